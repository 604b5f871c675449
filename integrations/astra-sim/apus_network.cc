#include "apus_network.hh"

#include <cmath>
#include <utility>

namespace Apus {

namespace {

// Picoseconds of one unit of ASTRA-sim's time; 0: unknown.
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

Fabric::Fabric(const std::string& scenario) {
    std::vector<char> error(4096);
    sim_.reset(apus_sim_create_from_file(scenario.c_str(), error.data(), error.size()));
    if (!sim_) {
        throw Error(error.data());
    }
    left_ = ranks();
    finished_.assign(static_cast<std::size_t>(left_), false);
}

int Fabric::ranks() const { return static_cast<int>(apus_sim_ranks(sim_.get())); }

std::uint64_t Fabric::now() const { return apus_sim_now(sim_.get()); }

void Fabric::check(int status) {
    if (status >= APUS_SIM_INVALID) {
        fail(apus_sim_last_error(sim_.get()));
    }
}

void Fabric::fail(const std::string& why) {
    if (!running_) {
        throw Error(why);
    }
    if (error_.empty()) {
        error_ = why;
    }
    apus_sim_stop(sim_.get());
}

void Fabric::run() {
    if (left_ == 0) {
        return;
    }
    running_ = true;
    const int status = apus_sim_run(sim_.get(), APUS_SIM_FOREVER);
    running_ = false;
    if (!error_.empty()) {
        throw Error(std::exchange(error_, std::string()));
    }
    if (left_ == 0) {
        return;
    }
    std::string waiting;
    for (std::size_t rank = 0; rank < finished_.size() && waiting.size() < 200; ++rank) {
        if (!finished_[rank]) {
            waiting += " " + std::to_string(rank);
        }
    }
    std::string why = status == APUS_SIM_OK ? "the scenario's duration is over"
                      : status == APUS_SIM_IDLE ? "nothing is left that could happen"
                                                : apus_sim_last_error(sim_.get());
    throw Error(std::to_string(left_) + " ranks have not finished (" + waiting.substr(1) + "): " + why);
}

void Fabric::finish(int rank) {
    const auto place = static_cast<std::size_t>(rank);
    if (place >= finished_.size() || finished_[place]) {
        return;
    }
    finished_[place] = true;
    if (--left_ == 0) {
        apus_sim_stop(sim_.get());
    }
}

Network::Network(Fabric& fabric, int rank, std::vector<double> gigabytes)
    : AstraSim::AstraNetworkAPI(rank), fabric_(fabric), gigabytes_(std::move(gigabytes)) {}

// The library queues every callback, also for the present time, so no handler runs within these functions.
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

// ASTRA-sim cuts times to whole nanoseconds. The time is exact here.
AstraSim::timespec_t Network::sim_get_time() {
    return {AstraSim::NS, static_cast<long double>(fabric_.now()) / 1e3L};
}

double Network::get_BW_at_dimension(int dim) {
    const auto place = static_cast<std::size_t>(dim);
    return place < gigabytes_.size() ? gigabytes_[place] : -1;
}

void Network::sim_notify_finished() { fabric_.finish(rank); }

}  // namespace Apus
