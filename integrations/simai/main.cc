// Executable that runs SimAI on Apus. See README.md.
#include <iostream>
#include <map>
#include <vector>

#include "astra-sim/system/Sys.hh"
#include "simai_network.hh"

namespace {

std::map<std::string, std::string> arguments(int count, char** words) {
    std::map<std::string, std::string> all = {{"workload", ""},       {"network", ""},    {"gpus-per-server", "8"},
                                              {"gpu-type", "H100"},   {"nvswitches", "0"}, {"send-latency", "6000"},
                                              {"results", "./simai_"}};
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        const auto equals = word.find('=');
        if (word.rfind("--", 0) != 0 || equals == std::string::npos || all.count(word.substr(2, equals - 2)) == 0) {
            throw Apus::Error("`" + word + "` is not one of the arguments --name=value of README.md");
        }
        all[word.substr(2, equals - 2)] = word.substr(equals + 1);
    }
    for (const char* name : {"workload", "network"}) {
        if (all.at(name).empty()) {
            throw Apus::Error(std::string("--") + name + "= is missing");
        }
    }
    return all;
}

int number(const std::map<std::string, std::string>& all, const std::string& name) {
    try {
        std::size_t end = 0;
        const int value = std::stoi(all.at(name), &end);
        if (value >= 0 && end == all.at(name).size()) {
            return value;
        }
    } catch (const std::exception&) {
    }
    throw Apus::Error("--" + name + "=" + all.at(name) + " is not a whole number (times are in nanoseconds, without a unit)");
}

GPUType gpu_type(const std::string& name) {
    const std::map<std::string, GPUType> all = {
        {"A100", GPUType::A100}, {"A800", GPUType::A800}, {"H100", GPUType::H100}, {"H800", GPUType::H800}, {"H20", GPUType::H20}};
    const auto found = all.find(name);
    if (found == all.end()) {
        throw Apus::Error("--gpu-type=" + name + " is not A100, A800, H100, H800 or H20");
    }
    return found->second;
}

int run(int count, char** words) {
    const auto all = arguments(count, words);
    Apus::Fabric fabric(all.at("network"));
    const int switches = number(all, "nvswitches");
    const int gpus = fabric.ranks() - switches;
    const int per_server = number(all, "gpus-per-server");
    if (per_server == 0 || gpus <= 0 || gpus % per_server != 0) {
        throw Apus::Error("the scenario has " + std::to_string(fabric.ranks()) + " ranks, which are not whole servers of " +
                          std::to_string(per_server) + " GPUs and " + std::to_string(switches) + " NVSwitches");
    }
    const int servers = gpus / per_server;
    if (switches != 0 && switches != servers) {
        throw Apus::Error("--nvswitches=" + std::to_string(switches) + " is neither 0 nor one for each of " +
                          std::to_string(servers) + " servers");
    }
    std::vector<int> numbers;
    for (int server = 0; server < servers; ++server) {
        numbers.push_back(gpus + server);
    }
    Apus::SimAi::Exchange exchange(fabric, static_cast<std::uint64_t>(number(all, "send-latency")) * 1000);
    std::vector<std::unique_ptr<Apus::SimAi::Network>> networks;
    // SimAI deletes these objects itself.
    std::vector<AstraSim::Sys*> systems;
    for (int rank = 0; rank < fabric.ranks(); ++rank) {
        networks.push_back(std::make_unique<Apus::SimAi::Network>(exchange, rank));
        systems.push_back(new AstraSim::Sys(networks.back().get(), nullptr, rank, 0, 1, {fabric.ranks()}, {1}, "",
                                            all.at("workload"), 1, 1, 1, 1, 0, all.at("results"), "apus", true, false,
                                            gpu_type(all.at("gpu-type")), {gpus}, numbers, per_server));
        systems.back()->nvswitch_id = rank < gpus ? gpus + rank / per_server : rank;
        systems.back()->num_gpus = gpus;
    }
    fabric.has_finished = [gpus](int rank) {
        return rank >= gpus || AstraSim::Sys::all_generators[static_cast<std::size_t>(rank)] == nullptr;
    };
    for (auto* system : systems) {
        system->workload->fire();
    }
    fabric.run();
    std::cout << "simulated " << static_cast<double>(fabric.now()) / 1e6 << " us" << std::endl;
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
