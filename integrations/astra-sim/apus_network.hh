// Network back end of ASTRA-sim: messages cross the fabric that Apus simulates, packet by packet.
//
// One Fabric owns the simulation, and one Network per rank is the object that ASTRA-sim calls.
#ifndef APUS_NETWORK_HH
#define APUS_NETWORK_HH

#include <cstdint>
#include <vector>

#include "apus_fabric.hh"
#include "astra-sim/common/AstraNetworkAPI.hh"

namespace Apus {

// The network of one rank.
class Network : public AstraSim::AstraNetworkAPI {
  public:
    // `gigabytes` is the bandwidth of each dimension that is reported to ASTRA-sim, in GB/s; -1 if unknown.
    Network(Fabric& fabric, int rank, std::vector<double> gigabytes = {});

    int sim_send(void* buffer, std::uint64_t count, int type, int dst, int tag, AstraSim::sim_request* request,
                 void (*msg_handler)(void* fun_arg), void* fun_arg) override;
    int sim_recv(void* buffer, std::uint64_t count, int type, int src, int tag, AstraSim::sim_request* request,
                 void (*msg_handler)(void* fun_arg), void* fun_arg) override;
    void sim_schedule(AstraSim::timespec_t delta, void (*fun_ptr)(void* fun_arg), void* fun_arg) override;
    AstraSim::timespec_t sim_get_time() override;
    double get_BW_at_dimension(int dim) override;
    void sim_notify_finished() override;

  private:
    Fabric& fabric_;
    std::vector<double> gigabytes_;
};

}  // namespace Apus

#endif
