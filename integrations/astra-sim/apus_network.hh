// A network back end of ASTRA-sim: its messages cross the fabric that Apus simulates, packet by packet.
//
// One ApusFabric has the simulation, and one ApusNetwork per rank is the object that ASTRA-sim calls.
#ifndef APUS_NETWORK_HH
#define APUS_NETWORK_HH

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "astra-sim/common/AstraNetworkAPI.hh"

extern "C" {
#include "apus_sim.h"
}

namespace Apus {

// An error of the simulation, or of ASTRA-sim's calls.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The simulated network, and which ranks have finished.
class Fabric {
  public:
    // Reads a scenario with a workload of kind "external".
    explicit Fabric(const std::string& scenario);

    // Number of ranks.
    int ranks() const;
    // Simulated time in picoseconds.
    std::uint64_t now() const;
    // Runs until all ranks have finished. Throws an Error that names what waits if nothing is left that could happen.
    void run();
    // Checks the result of a call. While the simulation runs, an error ends the run, which then throws it: no exception
    // may pass the library's frames.
    void check(int status);
    void fail(const std::string& why);
    // A rank has finished its workload.
    void finish(int rank);

    apus_sim* handle() const { return sim_.get(); }

  private:
    struct Destroy {
        void operator()(apus_sim* sim) const { apus_sim_destroy(sim); }
    };
    std::unique_ptr<apus_sim, Destroy> sim_;
    std::vector<bool> finished_;
    int left_ = 0;
    bool running_ = false;
    std::string error_;
};

// The network of one rank.
class Network : public AstraSim::AstraNetworkAPI {
  public:
    // `gigabytes` is what ASTRA-sim hears as the bandwidth of each dimension, in GB/s; -1: unknown.
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
