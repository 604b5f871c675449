#include "apus_network.hh"

#include <cmath>
#include <utility>

namespace Apus {

namespace {

// Returns the picoseconds in one unit of ASTRA-sim's time; 0 if the unit is unknown.
long double picoseconds(AstraSim::time_type_e unit) {
    switch (unit) {
        case AstraSim::SE:
            return 1e12L;
        case AstraSim::MS:
            return 1e9L;
        case AstraSim::US:
            return 1e6L;
        case AstraSim::NS:
            return 1e3L;
        case AstraSim::FS:
            return 1e-3L;
    }
    return 0;
}

}  // namespace

Network::Network(Fabric& fabric, int rank, std::vector<double> gigabytes)
    : AstraSim::AstraNetworkAPI(rank), fabric_(fabric), gigabytes_(std::move(gigabytes)) {}

// The library queues every callback, even for the current time, so no handler runs within these functions.
int Network::sim_send(void*, std::uint64_t count, int, int dst, int tag, AstraSim::sim_request*,
                      void (*msg_handler)(void* fun_arg), void* fun_arg) {
    fabric_.check(apus_sim_send(fabric_.handle(), static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(dst),
                                static_cast<std::uint32_t>(tag), count, msg_handler, fun_arg));
    return 0;
}

int Network::sim_recv(void*, std::uint64_t count, int, int src, int tag, AstraSim::sim_request*,
                      void (*msg_handler)(void* fun_arg), void* fun_arg) {
    fabric_.check(apus_sim_recv(fabric_.handle(), static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(src),
                                static_cast<std::uint32_t>(tag), count, msg_handler, fun_arg));
    return 0;
}

void Network::sim_schedule(AstraSim::timespec_t delta, void (*fun_ptr)(void* fun_arg), void* fun_arg) {
    const long double delay = delta.time_val * picoseconds(delta.time_res);
    if (!(delay >= 0) || picoseconds(delta.time_res) == 0) {
        fabric_.fail("ASTRA-sim scheduled an event in the past, or in an unknown unit of time");
        return;
    }
    fabric_.check(apus_sim_schedule(fabric_.handle(), static_cast<std::uint64_t>(std::llroundl(delay)), fun_ptr, fun_arg));
}

// ASTRA-sim truncates times to whole nanoseconds. The time returned here is exact.
AstraSim::timespec_t Network::sim_get_time() {
    return {AstraSim::NS, static_cast<long double>(fabric_.now()) / 1e3L};
}

double Network::get_BW_at_dimension(int dim) {
    const auto place = static_cast<std::size_t>(dim);
    return place < gigabytes_.size() ? gigabytes_[place] : -1;
}

void Network::sim_notify_finished() { fabric_.finish(rank); }

}  // namespace Apus
