// Replacement for the header with the argument of SimAI's receive handlers.
#ifndef STAND_IN_SIMAI_RECV_HH
#define STAND_IN_SIMAI_RECV_HH

#include "AstraNetworkAPI.hh"

namespace AstraSim {

class RecvPacketEventHadndlerData : public BasicEventHandlerData, public MetaData {
  public:
    ncclFlowTag flowTag;
};

}  // namespace AstraSim

#endif
