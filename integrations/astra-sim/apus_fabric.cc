#include "apus_fabric.hh"

#include <utility>

namespace Apus {

Fabric::Fabric(const std::string& scenario) {
    std::vector<char> error(4096);
    sim_.reset(apus_sim_create_from_file(scenario.c_str(), error.data(), error.size()));
    if (!sim_) {
        throw Error(error.data());
    }
    left_ = ranks();
    finished_.assign(static_cast<std::size_t>(left_), false);
    has_finished = [this](int rank) { return finished_[static_cast<std::size_t>(rank)]; };
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
    if (stopped_) {
        return;
    }
    running_ = true;
    const int status = apus_sim_run(sim_.get(), APUS_SIM_FOREVER);
    running_ = false;
    if (!error_.empty()) {
        throw Error(std::exchange(error_, std::string()));
    }
    if (stopped_) {
        return;
    }
    int unfinished = 0;
    std::string names;
    for (int rank = 0; rank < ranks(); ++rank) {
        if (has_finished(rank)) {
            continue;
        }
        ++unfinished;
        if (names.size() < 200) {
            names += (names.empty() ? "" : " ") + std::to_string(rank);
        }
    }
    std::string why = status == APUS_SIM_OK ? "the scenario's duration is over"
                      : status == APUS_SIM_IDLE ? "nothing is left that could happen"
                                                : apus_sim_last_error(sim_.get());
    if (waiting) {
        why += waiting();
    }
    throw Error(std::to_string(unfinished) + " ranks have not finished (" + names + "): " + why);
}

void Fabric::finish(int rank) {
    const auto place = static_cast<std::size_t>(rank);
    if (place >= finished_.size() || finished_[place]) {
        return;
    }
    finished_[place] = true;
    if (--left_ == 0) {
        stop();
    }
}

void Fabric::stop() {
    stopped_ = true;
    apus_sim_stop(sim_.get());
}

}  // namespace Apus
