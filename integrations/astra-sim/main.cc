// Executable that runs ASTRA-sim on Apus. It takes the arguments of ASTRA-sim's own executables, with an Apus scenario
// as the network; see README.md.
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "apus_network.hh"
#include "astra-sim/common/Logging.hh"
#include "astra-sim/system/Sys.hh"
#include "remote_memory_backend/analytical/AnalyticalRemoteMemory.hh"

namespace {

std::map<std::string, std::string> arguments(int count, char** words) {
    std::map<std::string, std::string> all = {
        {"comm-group-configuration", "empty"}, {"logging-configuration", "empty"}, {"logging-folder", "log"},
        {"num-queues-per-dim", "1"},           {"comm-scale", "1"},                {"injection-scale", "1"},
        {"rendezvous-protocol", "false"},      {"dims", ""},                       {"workload-configuration", ""},
        {"system-configuration", ""},          {"remote-memory-configuration", ""}, {"network-configuration", ""}};
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        const auto equals = word.find('=');
        if (word.rfind("--", 0) != 0 || equals == std::string::npos || all.count(word.substr(2, equals - 2)) == 0) {
            std::string names;
            for (const auto& argument : all) {
                names += " --" + argument.first + "=";
            }
            throw Apus::Error("`" + word + "` is not one of the arguments" + names);
        }
        all[word.substr(2, equals - 2)] = word.substr(equals + 1);
    }
    for (const char* name :
         {"workload-configuration", "system-configuration", "remote-memory-configuration", "network-configuration"}) {
        if (all.at(name).empty()) {
            throw Apus::Error(std::string("--") + name + "= is missing");
        }
    }
    const std::string& rendezvous = all.at("rendezvous-protocol");
    if (rendezvous != "true" && rendezvous != "false") {
        throw Apus::Error("--rendezvous-protocol=" + rendezvous + " is neither true nor false");
    }
    return all;
}

// Parses "8,4", the sizes of the dimensions of ASTRA-sim's logical topology; their product is the number of ranks.
std::vector<int> dimensions(const std::string& text, int ranks) {
    if (text.empty()) {
        return {ranks};
    }
    std::vector<int> sizes;
    std::istringstream words(text);
    int product = 1;
    for (std::string word; std::getline(words, word, ',');) {
        sizes.push_back(std::stoi(word));
        product *= sizes.back();
    }
    if (product != ranks) {
        throw Apus::Error("--dims=" + text + " are " + std::to_string(product) + " ranks, but the scenario has " +
                          std::to_string(ranks));
    }
    return sizes;
}

int run(int count, char** words) {
    const auto all = arguments(count, words);
    AstraSim::LoggerFactory::init(all.at("logging-configuration"), all.at("logging-folder"));
    Apus::Fabric fabric(all.at("network-configuration"));
    const auto sizes = dimensions(all.at("dims"), fabric.ranks());
    const std::vector<int> queues(sizes.size(), std::stoi(all.at("num-queues-per-dim")));
    Analytical::AnalyticalRemoteMemory memory(all.at("remote-memory-configuration"));
    std::vector<std::unique_ptr<Apus::Network>> networks;
    std::vector<std::unique_ptr<AstraSim::Sys>> systems;
    for (int rank = 0; rank < fabric.ranks(); ++rank) {
        networks.push_back(std::make_unique<Apus::Network>(fabric, rank));
        systems.push_back(std::make_unique<AstraSim::Sys>(
            rank, all.at("workload-configuration"), all.at("comm-group-configuration"), all.at("system-configuration"),
            &memory, networks.back().get(), sizes, queues, std::stod(all.at("injection-scale")),
            std::stod(all.at("comm-scale")), all.at("rendezvous-protocol") == "true"));
    }
    for (auto& system : systems) {
        system->workload->fire();
    }
    fabric.run();
    std::cout << "simulated " << static_cast<double>(fabric.now()) / 1e6 << " us" << std::endl;
    systems.clear();
    AstraSim::LoggerFactory::shutdown();
    return 0;
}

}  // namespace

int main(int count, char** words) {
    try {
        return run(count, words);
    } catch (const std::exception& error) {
        std::cerr << "error: " << error.what() << std::endl;
        return 1;
    }
}
