// Network back end of SimAI: flows cross the fabric that Apus simulates, packet by packet.
//
// One Exchange matches the messages of all ranks with their receives, and one Network per rank is the object that SimAI
// calls.
#ifndef APUS_SIMAI_NETWORK_HH
#define APUS_SIMAI_NETWORK_HH

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>

#include "apus_fabric.hh"
#include "astra-sim/system/AstraNetworkAPI.hh"

namespace Apus {
namespace SimAi {

using Handler = void (*)(void* fun_arg);

// Messages in flight, messages without a receive, and receives without a message.
class Exchange {
  public:
    // Each message leaves after `latency`, in picoseconds.
    Exchange(Fabric& fabric, std::uint64_t latency);
    ~Exchange();

    void send(int from, int to, std::uint64_t bytes, const AstraSim::ncclFlowTag& tag, Handler handler, void* argument);
    void receive(int from, int to, int tag, Handler handler, void* argument);

    Fabric& fabric() { return fabric_; }

  private:
    struct Transfer;
    // Tag, sender and receiver.
    using Key = std::tuple<int, int, int>;
    struct Receive {
        Handler handler;
        void* argument;
    };

    static void depart(void* transfer);
    static void sent(void* transfer);
    static void arrived(void* transfer);
    static void matched(void* transfer);
    void release(Transfer& transfer);
    void match(Transfer& transfer, const Receive& receive);
    std::string waiting() const;

    Fabric& fabric_;
    std::uint64_t latency_;
    std::uint64_t next_ = 0;
    std::unordered_map<std::uint64_t, std::unique_ptr<Transfer>> transfers_;
    std::map<Key, Receive> receives_;
    std::map<Key, std::deque<Transfer*>> unexpected_;
};

// The network of one rank.
class Network : public AstraSim::AstraNetworkAPI {
  public:
    Network(Exchange& exchange, int rank);

    int sim_comm_size(AstraSim::sim_comm comm, int* size) override;
    int sim_finish() override;
    double sim_time_resolution() override { return 0; }
    int sim_init(AstraSim::AstraMemoryAPI*) override { return 0; }
    AstraSim::timespec_t sim_get_time() override;
    void sim_schedule(AstraSim::timespec_t delta, Handler fun_ptr, void* fun_arg) override;
    int sim_send(void* buffer, std::uint64_t count, int type, int dst, int tag, AstraSim::sim_request* request,
                 Handler msg_handler, void* fun_arg) override;
    int sim_recv(void* buffer, std::uint64_t count, int type, int src, int tag, AstraSim::sim_request* request,
                 Handler msg_handler, void* fun_arg) override;

  private:
    Exchange& exchange_;
};

}  // namespace SimAi
}  // namespace Apus

#endif
