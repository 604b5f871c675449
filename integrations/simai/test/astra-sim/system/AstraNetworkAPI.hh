// Replacement for SimAI's header with the same interface (SimAI cef83f9), for the test of this back end.
#ifndef STAND_IN_SIMAI_NETWORK_API_HH
#define STAND_IN_SIMAI_NETWORK_API_HH

#include <cstdint>
#include <string>
#include <vector>

namespace AstraSim {

class AstraMemoryAPI;

struct sim_comm {
    std::string comm_name;
};

enum time_type_e { SE, MS, US, NS, FS };

struct timespec_t {
    time_type_e time_res;
    double time_val;
};

// Has only the fields of SimAI's type that the test uses; the back end copies the whole object.
struct ncclFlowTag {
    int current_flow_id = -1;
    int tag_id = -1;
    std::vector<int> tree_flow_list;
};

struct sim_request {
    ncclFlowTag flowTag;
};

class AstraNetworkAPI {
  public:
    explicit AstraNetworkAPI(int number) : rank(number) {}
    virtual ~AstraNetworkAPI() = default;

    virtual int sim_comm_size(sim_comm comm, int* size) = 0;
    virtual int sim_finish() = 0;
    virtual double sim_time_resolution() = 0;
    virtual int sim_init(AstraMemoryAPI* memory) = 0;
    virtual timespec_t sim_get_time() = 0;
    virtual void sim_schedule(timespec_t delta, void (*fun_ptr)(void* fun_arg), void* fun_arg) = 0;
    virtual int sim_send(void* buffer, std::uint64_t count, int type, int dst, int tag, sim_request* request,
                         void (*msg_handler)(void* fun_arg), void* fun_arg) = 0;
    virtual int sim_recv(void* buffer, std::uint64_t count, int type, int src, int tag, sim_request* request,
                         void (*msg_handler)(void* fun_arg), void* fun_arg) = 0;

  protected:
    int rank;
};

enum class EventType { General, PacketReceived, PacketSent, PacketSentFinshed, CallEvents };

class MetaData {
  public:
    timespec_t timestamp;
};

struct BasicEventHandlerData {
    virtual ~BasicEventHandlerData() = default;
    EventType event = EventType::General;
};

}  // namespace AstraSim

#endif
