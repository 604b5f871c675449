#include "simai_network.hh"

#include <algorithm>
#include <cmath>

#include "astra-sim/system/RecvPacketEventHadndlerData.hh"
#include "astra-sim/system/SendPacketEventHandlerData.hh"

namespace Apus {
namespace SimAi {

using AstraSim::BasicEventHandlerData;
using AstraSim::EventType;

struct Exchange::Transfer {
    Exchange& exchange;
    std::uint64_t number;
    int from;
    int to;
    std::uint64_t bytes;
    AstraSim::ncclFlowTag tag;
    Receive sender;
    Receive receiver{nullptr, nullptr};
    bool is_sent = false;
    bool is_received = false;
};

Exchange::Exchange(Fabric& fabric, std::uint64_t latency) : fabric_(fabric), latency_(latency) {
    fabric_.waiting = [this] { return waiting(); };
}

Exchange::~Exchange() { fabric_.waiting = nullptr; }

void Exchange::send(int from, int to, std::uint64_t bytes, const AstraSim::ncclFlowTag& tag, Handler handler,
                    void* argument) {
    const std::uint64_t number = next_++;
    auto& transfer = transfers_[number];
    transfer.reset(new Transfer{*this, number, from, to, bytes, tag, {handler, argument}});
    if (latency_ == 0) {
        depart(transfer.get());
    } else {
        fabric_.check(apus_sim_schedule(fabric_.handle(), latency_, depart, transfer.get()));
    }
}

// Each message has a unique number as its tag in the library. The library therefore reports its arrival even if SimAI
// has no receive for it yet.
void Exchange::depart(void* argument) {
    auto& transfer = *static_cast<Transfer*>(argument);
    Fabric& fabric = transfer.exchange.fabric_;
    const auto from = static_cast<std::uint32_t>(transfer.from);
    const auto to = static_cast<std::uint32_t>(transfer.to);
    const std::uint64_t number = transfer.number;
    const std::uint64_t bytes = transfer.bytes;
    fabric.check(apus_sim_send(fabric.handle(), from, to, number, bytes, sent, &transfer));
    fabric.check(apus_sim_recv(fabric.handle(), to, from, number, bytes, arrived, &transfer));
}

// SimAI's model of NCCL continues its flows with the tag of the message that has left or arrived. Arguments of other
// types have no field for the tag.
void Exchange::sent(void* argument) {
    auto& transfer = *static_cast<Transfer*>(argument);
    const Receive sender = transfer.sender;
    if (sender.argument != nullptr) {
        auto* data = static_cast<BasicEventHandlerData*>(sender.argument);
        if (data->event == EventType::PacketSent || data->event == EventType::PacketSentFinshed) {
            static_cast<AstraSim::SendPacketEventHandlerData*>(data)->flowTag = transfer.tag;
        }
    }
    transfer.is_sent = true;
    transfer.exchange.release(transfer);
    if (sender.handler != nullptr) {
        sender.handler(sender.argument);
    }
}

void Exchange::arrived(void* argument) {
    auto& transfer = *static_cast<Transfer*>(argument);
    Exchange& exchange = transfer.exchange;
    const Key key(transfer.tag.tag_id, transfer.from, transfer.to);
    const auto receive = exchange.receives_.find(key);
    if (receive == exchange.receives_.end()) {
        exchange.unexpected_[key].push_back(&transfer);
        return;
    }
    transfer.receiver = receive->second;
    exchange.receives_.erase(receive);
    matched(&transfer);
}

void Exchange::matched(void* argument) {
    auto& transfer = *static_cast<Transfer*>(argument);
    const Receive receiver = transfer.receiver;
    if (receiver.argument != nullptr) {
        auto* data = static_cast<BasicEventHandlerData*>(receiver.argument);
        if (data->event == EventType::PacketReceived) {
            static_cast<AstraSim::RecvPacketEventHadndlerData*>(data)->flowTag = transfer.tag;
        }
    }
    transfer.is_received = true;
    transfer.exchange.release(transfer);
    if (receiver.handler != nullptr) {
        receiver.handler(receiver.argument);
    }
}

void Exchange::release(Transfer& transfer) {
    if (transfer.is_sent && transfer.is_received) {
        transfers_.erase(transfer.number);
    }
}

void Exchange::receive(int from, int to, int tag, Handler handler, void* argument) {
    const Key key(tag, from, to);
    const auto messages = unexpected_.find(key);
    if (messages == unexpected_.end()) {
        // SimAI's model of NCCL posts more receives with a key than messages arrive. As in its ns-3 front end, the
        // first one is kept.
        receives_.insert({key, {handler, argument}});
        return;
    }
    Transfer& transfer = *messages->second.front();
    messages->second.pop_front();
    if (messages->second.empty()) {
        unexpected_.erase(messages);
    }
    transfer.receiver = {handler, argument};
    // No handler may run within sim_recv.
    fabric_.check(apus_sim_schedule(fabric_.handle(), 0, matched, &transfer));
}

std::string Exchange::waiting() const {
    std::string text;
    const auto name = [&text](const char* what, const Key& key) {
        if (text.size() < 1000) {
            text += std::string("; ") + what + " from rank " + std::to_string(std::get<1>(key)) + " to rank " +
                    std::to_string(std::get<2>(key)) + " with tag " + std::to_string(std::get<0>(key));
        }
    };
    for (const auto& receive : receives_) {
        name("no message for a receive", receive.first);
    }
    for (const auto& messages : unexpected_) {
        name("no receive for a message", messages.first);
    }
    return text;
}

Network::Network(Exchange& exchange, int rank) : AstraSim::AstraNetworkAPI(rank), exchange_(exchange) {}

int Network::sim_comm_size(AstraSim::sim_comm, int* size) {
    *size = exchange_.fabric().ranks();
    return 0;
}

// The last rank calls this function after all ranks have finished.
int Network::sim_finish() {
    exchange_.fabric().stop();
    return 0;
}

// All times in SimAI are nanoseconds; it does not set the unit of a delay.
AstraSim::timespec_t Network::sim_get_time() {
    AstraSim::timespec_t now;
    now.time_res = AstraSim::NS;
    now.time_val = static_cast<double>(exchange_.fabric().now()) / 1e3;
    return now;
}

void Network::sim_schedule(AstraSim::timespec_t delta, Handler fun_ptr, void* fun_arg) {
    Fabric& fabric = exchange_.fabric();
    if (!(delta.time_val >= 0)) {
        fabric.fail("SimAI scheduled an event in the past");
        return;
    }
    const auto delay = static_cast<std::uint64_t>(std::llround(delta.time_val * 1e3));
    fabric.check(apus_sim_schedule(fabric.handle(), delay, fun_ptr, fun_arg));
}

int Network::sim_send(void*, std::uint64_t count, int, int dst, int, AstraSim::sim_request* request, Handler msg_handler,
                      void* fun_arg) {
    // An empty flow sends one byte, as in SimAI's ns-3 front end.
    exchange_.send(rank, dst, std::max<std::uint64_t>(count, 1), request->flowTag, msg_handler, fun_arg);
    return 0;
}

int Network::sim_recv(void*, std::uint64_t, int, int src, int tag, AstraSim::sim_request*, Handler msg_handler,
                      void* fun_arg) {
    // In SimAI's model of NCCL, the argument of a receive contains its tag. Its size is that of the flow that the rank
    // sends next, which may differ from the size of the message.
    if (fun_arg != nullptr) {
        auto* data = static_cast<BasicEventHandlerData*>(fun_arg);
        if (data->event == EventType::PacketReceived) {
            tag = static_cast<AstraSim::RecvPacketEventHadndlerData*>(data)->flowTag.tag_id;
        }
    }
    exchange_.receive(src, rank, tag, msg_handler, fun_arg);
    return 0;
}

}  // namespace SimAi
}  // namespace Apus
