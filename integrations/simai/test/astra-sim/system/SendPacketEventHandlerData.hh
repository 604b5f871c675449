// Replacement for the header with the argument of SimAI's send handlers.
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
