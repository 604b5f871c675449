// Calls the back end like SimAI's model of NCCL, including its special cases. Prints the results, and fails at the
// first difference. Argument: the scenario, a star of 8 ranks with 100 Gb/s and links of 1 us.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>

#include "astra-sim/system/RecvPacketEventHadndlerData.hh"
#include "astra-sim/system/SendPacketEventHandlerData.hh"
#include "simai_network.hh"

namespace {

using namespace AstraSim;
using Apus::SimAi::Network;

// True while a function of the back end runs; handlers must not run then.
bool in_call = false;

void require(bool holds, const char* what) {
    if (!holds) {
        std::printf("failed: %s\n", what);
        std::exit(1);
    }
}

// Arguments of SimAI's handlers, together with the action of the handler.
struct Received : RecvPacketEventHadndlerData {
    std::function<void(const ncclFlowTag&)> then;
};
struct Sent : SendPacketEventHandlerData {
    std::function<void(const ncclFlowTag&)> then;
};

// Works like SimAI's handler: the argument is the base type, and its event identifies the full type.
void handle(void* argument) {
    require(!in_call, "no handler runs within a call");
    auto* data = static_cast<BasicEventHandlerData*>(argument);
    if (data->event == EventType::PacketReceived) {
        auto* received = static_cast<Received*>(data);
        received->then(received->flowTag);
    } else if (data->event == EventType::PacketSentFinshed) {
        auto* sent = static_cast<Sent*>(data);
        sent->then(sent->flowTag);
    }
    delete data;
}

void call_function(void* argument) {
    require(!in_call, "no handler runs within a call");
    (*static_cast<std::function<void()>*>(argument))();
}

struct World {
    Apus::Fabric fabric;
    Apus::SimAi::Exchange exchange;
    std::deque<Network> ranks;

    World(const char* scenario, std::uint64_t latency) : fabric(scenario), exchange(fabric, latency) {
        for (int rank = 0; rank < fabric.ranks(); ++rank) {
            ranks.emplace_back(exchange, rank);
        }
    }

    Network& rank(int number) { return ranks[static_cast<std::size_t>(number)]; }

    // The request contains the tag of the flow; the parameter `tag` has a different number.
    void send(int from, int to, std::uint64_t bytes, const ncclFlowTag& tag,
              std::function<void(const ncclFlowTag&)> then = [](const ncclFlowTag&) {}) {
        auto* data = new Sent;
        data->event = EventType::PacketSentFinshed;
        data->then = std::move(then);
        sim_request request;
        request.flowTag = tag;
        in_call = true;
        rank(from).sim_send(nullptr, bytes, 0, to, 1000, &request, handle, data);
        in_call = false;
    }

    // The argument contains the tag of the receive.
    void receive(int from, int to, std::uint64_t bytes, int tag, std::function<void(const ncclFlowTag&)> then) {
        auto* data = new Received;
        data->event = EventType::PacketReceived;
        data->flowTag.tag_id = tag;
        data->then = std::move(then);
        sim_request request;
        in_call = true;
        rank(to).sim_recv(nullptr, bytes, 0, from, 2000, &request, handle, data);
        in_call = false;
    }

    void schedule(double ns, std::function<void()>* function) {
        timespec_t delay;
        delay.time_res = SE;  // SimAI leaves it unset
        delay.time_val = ns;
        in_call = true;
        rank(0).sim_schedule(delay, call_function, function);
        in_call = false;
    }

    double us() { return rank(0).sim_get_time().time_val / 1e3; }
};

ncclFlowTag flow(int tag, int number, std::vector<int> next = {}) {
    ncclFlowTag flow;
    flow.tag_id = tag;
    flow.current_flow_id = number;
    flow.tree_flow_list = std::move(next);
    return flow;
}

// Ring all-reduce: flow `step * 8 + rank` goes from a rank to the next one. The arrived flow names the flow that the
// receiver sends next. The tag of a flow is its step.
void ring(const char* scenario) {
    World world(scenario, 0);
    const int ranks = world.fabric.ranks();
    const int steps = 2 * (ranks - 1);
    const std::uint64_t part = 1 << 20;
    int left = ranks;
    double last = 0;
    std::function<void(int)> go = [&](int number) {
        const int step = number / ranks, from = number % ranks, to = (from + 1) % ranks;
        if (step > 0) {
            world.receive((from + ranks - 1) % ranks, from, part, step, [&, from](const ncclFlowTag& tag) {
                require(tag.tag_id == tag.current_flow_id / ranks, "a receive gets the tag of its flow");
                if (!tag.tree_flow_list.empty()) {
                    go(tag.tree_flow_list[0]);
                } else if (--left == 0) {
                    last = world.us();
                    world.rank(from).sim_finish();
                }
            });
        }
        const int next = (step + 1) * ranks + to;
        world.send(from, to, part, flow(step, number, step + 1 < steps ? std::vector<int>{next} : std::vector<int>{}),
                   [number](const ncclFlowTag& tag) { require(tag.current_flow_id == number, "a send gets its flow back"); });
    };
    for (int rank = 0; rank < ranks; ++rank) {
        world.receive((rank + ranks - 1) % ranks, rank, part, 0, [&](const ncclFlowTag& tag) { go(tag.tree_flow_list[0]); });
        go(rank);
    }
    world.fabric.run();
    std::printf("ring %.4f us\n", last);
}

// Of several waiting receives with a key, the first one counts. Messages that arrive before their receives wait, each
// with its tag. The size of a receive is not that of its message.
void keys(const char* scenario) {
    World world(scenario, 0);
    std::string order;
    const auto note = [&](const char* name) {
        return [&order, name](const ncclFlowTag& tag) { order += name + std::to_string(tag.current_flow_id); };
    };
    world.receive(0, 1, 10, 7, note("a"));
    world.receive(0, 1, 10, 7, note("b"));
    world.send(0, 1, 1000000, flow(7, 1));
    world.send(0, 1, 100, flow(9, 2));
    world.send(0, 1, 200, flow(9, 3));
    world.send(2, 1, 100, flow(9, 4));
    std::function<void()> late = [&] {
        world.receive(0, 1, 999, 9, note("c"));
        world.receive(0, 1, 999, 9, note("d"));
        world.receive(2, 1, 999, 9, [&](const ncclFlowTag& tag) {
            order += "e" + std::to_string(tag.current_flow_id);
            world.rank(0).sim_finish();
        });
    };
    world.schedule(1e6, &late);
    world.fabric.run();
    require(order == "a1c2d3e4", order.c_str());
    require(std::fabs(world.us() - 1000) < 1e-9, "a late receive ends at once");
    std::printf("keys %s\n", order.c_str());
}

// A message leaves after the send latency, and a message of 0 bytes is sent as one byte.
void latency(const char* scenario) {
    double without = 0, with = 0;
    for (const std::uint64_t ps : {0ULL, 6000000ULL}) {
        World world(scenario, ps);
        world.receive(0, 1, 0, 0, [&](const ncclFlowTag&) { world.rank(1).sim_finish(); });
        world.send(0, 1, 0, flow(0, 0));
        world.fabric.run();
        (ps == 0 ? without : with) = world.us();
    }
    require(std::fabs(with - without - 6) < 1e-9, "a message leaves after the latency");
    // 65 B over two links of 100 Gb/s and 1 us.
    std::printf("byte %.4f us\n", without);
}

void unfinished(const char* scenario) {
    World world(scenario, 0);
    world.receive(5, 3, 77, 42, [](const ncclFlowTag&) { require(false, "nothing arrives"); });
    world.send(4, 3, 10, flow(41, 0));
    world.fabric.has_finished = [](int rank) { return rank != 3; };
    try {
        world.fabric.run();
    } catch (const Apus::Error& error) {
        std::printf("unfinished: %s\n", error.what());
        return;
    }
    require(false, "an unfinished rank is an error");
}

void refused(const char* scenario) {
    World world(scenario, 0);
    std::function<void()> wrong = [&] { world.send(1, 1, 10, flow(0, 0)); };
    world.schedule(0, &wrong);
    try {
        world.fabric.run();
        require(false, "a wrong call is an error");
    } catch (const Apus::Error& error) {
        std::printf("refused: %s\n", error.what());
    }
    int size = 0;
    world.rank(0).sim_comm_size({""}, &size);
    require(size == world.fabric.ranks(), "the number of ranks");
}

}  // namespace

int main(int count, char** words) {
    if (count != 2) {
        return 2;
    }
    ring(words[1]);
    keys(words[1]);
    latency(words[1]);
    unfinished(words[1]);
    refused(words[1]);
    return 0;
}
