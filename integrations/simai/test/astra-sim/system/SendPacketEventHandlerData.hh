// A stand-in for the header of SimAI's argument of handlers of sends.
#ifndef STAND_IN_SIMAI_SEND_HH
#define STAND_IN_SIMAI_SEND_HH

#include "AstraNetworkAPI.hh"

namespace AstraSim {

class SendPacketEventHandlerData : public BasicEventHandlerData, public MetaData {
  public:
    ncclFlowTag flowTag;
};

}  // namespace AstraSim

#endif
