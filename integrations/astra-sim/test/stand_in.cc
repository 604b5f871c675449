// Calls the back end in ASTRA-sim's order, including its special cases. Prints the results, and fails at the first
// difference. Argument: the scenario, a star of 8 ranks with 100 Gb/s and links of 1 us.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>

#include "apus_network.hh"

namespace {

using Networks = std::deque<Apus::Network>;

// True while a function of the back end runs; handlers must not run then.
bool in_call = false;

void require(bool holds, const char* what) {
    if (!holds) {
        std::printf("failed: %s\n", what);
        std::exit(1);
    }
}

void call(const std::function<void()>& function) {
    in_call = true;
    function();
    in_call = false;
}

Networks networks(Apus::Fabric& fabric) {
    Networks all;
    for (int rank = 0; rank < fabric.ranks(); ++rank) {
        all.emplace_back(fabric, rank);
    }
    return all;
}

void run_function(void* argument) {
    require(!in_call, "no handler runs within a call");
    if (argument != nullptr) {
        (*static_cast<std::function<void()>*>(argument))();
    }
}

void send(Apus::Network& network, int to, int tag, std::uint64_t bytes, std::function<void()>* done) {
    call([&] { network.sim_send(nullptr, bytes, 0, to, tag, nullptr, run_function, done); });
}

void receive(Apus::Network& network, int from, int tag, std::uint64_t bytes, std::function<void()>* done) {
    call([&] { network.sim_recv(nullptr, bytes, 0, from, tag, nullptr, run_function, done); });
}

void schedule(Apus::Network& network, long double ns, std::function<void()>* function) {
    call([&] { network.sim_schedule({AstraSim::NS, ns}, run_function, function); });
}

// Ring all-reduce: 2 (N - 1) steps of a part, all with one tag. The next step follows after a delay of 0 ns, and the
// argument of sends is NULL. The receive of a step may be posted after a faster neighbour has sent the message.
void ring(const char* scenario) {
    Apus::Fabric fabric(scenario);
    Networks all = networks(fabric);
    const int ranks = fabric.ranks();
    const std::uint64_t part = (8u << 20) / static_cast<unsigned>(ranks);
    const int tag = 500000000;
    std::deque<std::function<void()>> arrived(static_cast<std::size_t>(ranks)), begin(arrived.size());
    std::vector<int> left(arrived.size(), 2 * (ranks - 1));
    double last = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        const auto place = static_cast<std::size_t>(rank);
        begin[place] = [&, rank, place] {
            send(all[place], (rank + 1) % ranks, tag, part, nullptr);
            receive(all[place], (rank + ranks - 1) % ranks, tag, part, &arrived[place]);
        };
        arrived[place] = [&, place] {
            const auto now = all[place].sim_get_time();
            require(now.time_res == AstraSim::NS, "times are in nanoseconds");
            last = static_cast<double>(now.time_val);
            if (--left[place] > 0) {
                schedule(all[place], 0, &begin[place]);
            } else {
                all[place].sim_notify_finished();
            }
        };
    }
    for (auto& function : begin) {
        function();
    }
    fabric.run();
    std::printf("ring %.4f us\n", last / 1e3);
}

// Several messages with one key are in flight: the n-th receive takes the n-th message, whether it is posted before or
// after.
void equal_keys(const char* scenario) {
    Apus::Fabric fabric(scenario);
    Networks all = networks(fabric);
    std::string order;
    std::function<void()> first = [&] { order += "1"; }, second = [&] { order += "2"; }, third = [&] {
        order += "3";
        for (auto& network : all) {
            network.sim_notify_finished();
        }
    };
    send(all[0], 1, 7, 1000000, nullptr);
    receive(all[1], 0, 7, 1000000, &first);
    receive(all[1], 0, 7, 1000000, &second);
    send(all[0], 1, 7, 1000000, nullptr);
    send(all[0], 1, 7, 100, nullptr);
    // A different source or a different tag does not match.
    send(all[2], 1, 7, 1000, nullptr);
    send(all[0], 1, 8, 1000, nullptr);
    std::function<void()> late = [&] { receive(all[1], 0, 7, 100, &third); };
    schedule(all[1], 1e6, &late);
    fabric.run();
    require(order == "123", "receives of one key end in order");
    require(std::fabs(static_cast<double>(all[1].sim_get_time().time_val) - 1e6) < 1e-9, "the late receive ends at once");
    std::printf("keys %s\n", order.c_str());
}

// If a rank waits for a message that is never sent, the error names the rank, and the run does not hang.
void unfinished(const char* scenario) {
    Apus::Fabric fabric(scenario);
    Networks all = networks(fabric);
    std::function<void()> never = [] { require(false, "nothing arrives"); };
    receive(all[3], 5, 42, 77, &never);
    for (int rank = 0; rank < fabric.ranks(); ++rank) {
        if (rank != 3) {
            all[static_cast<std::size_t>(rank)].sim_notify_finished();
        }
    }
    try {
        fabric.run();
    } catch (const Apus::Error& error) {
        std::printf("unfinished: %s\n", error.what());
        return;
    }
    require(false, "an unfinished rank is an error");
}

// An invalid call within a handler ends the run with its error text; outside a run it throws at once.
void refused(const char* scenario) {
    Apus::Fabric fabric(scenario);
    Networks all = networks(fabric);
    std::function<void()> wrong = [&] { send(all[1], 1, 0, 10, nullptr); };
    schedule(all[0], 0, &wrong);
    try {
        fabric.run();
        require(false, "a wrong call is an error");
    } catch (const Apus::Error& error) {
        std::printf("refused: %s\n", error.what());
    }
    try {
        all[1].sim_send(nullptr, 0, 0, 2, 0, nullptr, run_function, nullptr);
        require(false, "an empty message is an error");
    } catch (const Apus::Error& error) {
        std::printf("refused: %s\n", error.what());
    }
}

}  // namespace

int main(int count, char** words) {
    if (count != 2) {
        return 2;
    }
    ring(words[1]);
    equal_keys(words[1]);
    unfinished(words[1]);
    refused(words[1]);
    try {
        Apus::Fabric("no such file");
        require(false, "a missing scenario is an error");
    } catch (const Apus::Error& error) {
        std::printf("scenario: %s\n", error.what());
    }
    return 0;
}
