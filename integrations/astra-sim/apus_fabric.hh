// Simulated network of a back end, with the set of ranks that have finished.
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

// An error of the simulation or of a call to the simulator.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class Fabric {
  public:
    // Reads a scenario with a workload of kind "external".
    explicit Fabric(const std::string& scenario);

    // Returns the number of ranks.
    int ranks() const;
    // Returns the simulated time in picoseconds.
    std::uint64_t now() const;
    // Runs until all ranks have finished or stop() is called. If no further event can occur before that, throws an
    // Error that names the waiting ranks.
    void run();
    // Checks the result of a call. During a simulation an error ends the run, which then throws it, because no
    // exception may pass through the library's stack frames.
    void check(int status);
    void fail(const std::string& why);
    // Records that a rank has finished its workload. The last rank stops the run.
    void finish(int rank);
    // Ends the run.
    void stop();

    // If set, tells whether a rank has finished, for errors of back ends that know it better than the fabric.
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
