// The simulated network of a back end, and which of its ranks have finished.
#ifndef APUS_FABRIC_HH
#define APUS_FABRIC_HH

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" {
#include "apus_sim.h"
}

namespace Apus {

// An error of the simulation, or of the simulator's calls.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class Fabric {
  public:
    // Reads a scenario with a workload of kind "external".
    explicit Fabric(const std::string& scenario);

    // Number of ranks.
    int ranks() const;
    // Simulated time in picoseconds.
    std::uint64_t now() const;
    // Runs until all ranks have finished, or stop() was called. Throws an Error that names what waits if nothing is left
    // that could happen.
    void run();
    // Checks the result of a call. While the simulation runs, an error ends the run, which then throws it: no exception
    // may pass the library's frames.
    void check(int status);
    void fail(const std::string& why);
    // A rank has finished its workload. The last one stops the run.
    void finish(int rank);
    // The run has reached its end.
    void stop();

    // Tells for an error whether a rank has finished, and what waits, if the back end knows it better.
    std::function<bool(int)> has_finished;
    std::function<std::string()> waiting;

    apus_sim* handle() const { return sim_.get(); }

  private:
    struct Destroy {
        void operator()(apus_sim* sim) const { apus_sim_destroy(sim); }
    };
    std::unique_ptr<apus_sim, Destroy> sim_;
    std::vector<bool> finished_;
    int left_ = 0;
    bool running_ = false;
    bool stopped_ = false;
    std::string error_;
};

}  // namespace Apus

#endif
