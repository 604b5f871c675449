//! Halves that forward every call to another half, with one list of the methods per trait.

/// Forwards the methods of [`Sender`](crate::Sender): `$to!(self name (arguments))` calls the method of the
/// half that receives the call.
#[macro_export]
macro_rules! forward_sender {
    ($to:ident) => {
        $crate::forward_methods! { $to
            fn on_ack(&mut self, event: &$crate::AckEvent<'_>);
            fn on_loss(&mut self, event: &$crate::LossEvent);
            fn on_trim(&mut self, event: &$crate::TrimEvent);
            fn on_timeout(&mut self, event: &$crate::TimeoutEvent);
            fn on_transmit(&mut self, header: &mut $crate::CongestionHeader, info: &$crate::SendInfo);
            fn allowance(&self) -> $crate::Allowance;
            fn departure(&mut self, now: $crate::Time, in_flight: u32) -> $crate::Departure;
            fn on_idle(&mut self, now: $crate::Time);
            fn rto(&self) -> $crate::Span;
            fn on_credit(&mut self, event: &$crate::CreditEvent);
            fn on_grant(&mut self, now: $crate::Time, total: u32);
            fn on_signal(&mut self, event: &$crate::SignalEvent);
            fn on_notification(&mut self, now: $crate::Time);
            fn on_packet_size(&mut self, event: &$crate::PacketSizeEvent);
            fn poll_control(&mut self, now: $crate::Time, backlog: &$crate::Backlog) -> Option<$crate::SenderControl>;
            fn next_timer(&self) -> Option<$crate::Time>;
            fn on_timer(&mut self, now: $crate::Time);
            fn path_label(&self) -> u32;
            fn outlook(&self) -> $crate::Outlook;
            fn snapshot(&self) -> $crate::Snapshot;
        }
    };
}

/// Forwards the methods of [`ReplaySender`](crate::ReplaySender) as [`forward_sender`](crate::forward_sender)
/// does.
#[macro_export]
macro_rules! forward_replay_sender {
    ($to:ident) => {
        $crate::forward_methods! { $to
            fn set_state(&mut self, state: &$crate::StateOverride) -> Result<(), $crate::StateError>;
            fn set_latest_rtt(&mut self, rtt: $crate::Span);
            fn target_delay(&self, hops: u8) -> Option<$crate::Span>;
        }
    };
}

/// Forwards the methods of [`Receiver`](crate::Receiver) as [`forward_sender`](crate::forward_sender) does.
#[macro_export]
macro_rules! forward_receiver {
    ($to:ident) => {
        $crate::forward_methods! { $to
            fn on_data(&mut self, event: &$crate::DataEvent) -> bool;
            fn echo(&self) -> $crate::Fields;
            fn is_plain(&self) -> bool;
            fn sends_control(&self) -> bool;
            fn on_credit_request(&mut self, now: $crate::Time, packets: u32);
            fn on_credit_stop(&mut self, now: $crate::Time);
            fn on_trimmed(&mut self, event: &$crate::DataEvent);
            fn turn(&self) -> $crate::Turn;
            fn take_turn(&mut self, asked: bool) -> $crate::Bytes;
            fn next_control(&self) -> $crate::Time;
            fn poll_control(&mut self, now: $crate::Time) -> Option<$crate::ReceiverControl>;
        }
    };
}

/// Forwards the methods of [`SwitchHalf`](crate::SwitchHalf) as [`forward_sender`](crate::forward_sender)
/// does.
#[macro_export]
macro_rules! forward_switch {
    ($to:ident) => {
        $crate::forward_methods! { $to
            fn on_enqueue(&mut self, header: &mut $crate::CongestionHeader, bytes: $crate::Bytes, view: &$crate::PortView<'_>) -> $crate::Verdict;
            fn on_refused(&mut self, bytes: $crate::Bytes);
            fn on_dequeue(&mut self, header: &mut $crate::CongestionHeader, telemetry: Option<&mut $crate::Telemetry>, bytes: $crate::Bytes, view: &$crate::PortView<'_>) -> $crate::Verdict;
            fn is_plain(&self) -> bool;
            fn feedback(&self) -> $crate::SwitchFeedback;
            fn signals(&self) -> bool;
            fn acts_on_dequeue(&self) -> bool;
            fn on_capacity(&mut self, fraction: f64);
            fn reseed(&mut self, seed: u64);
        }
    };
}

/// Forwards a list of methods; used by the other macros of this file.
#[doc(hidden)]
#[macro_export]
macro_rules! forward_methods {
    ($to:ident) => {};
    ($to:ident fn $name:ident(&mut self $(, $arg:ident: $type:ty)*) $(-> $result:ty)?; $($more:tt)*) => {
        #[inline]
        fn $name(&mut self $(, $arg: $type)*) $(-> $result)? {
            $to!(self $name ($($arg),*))
        }
        $crate::forward_methods! { $to $($more)* }
    };
    ($to:ident fn $name:ident(&self $(, $arg:ident: $type:ty)*) $(-> $result:ty)?; $($more:tt)*) => {
        #[inline]
        fn $name(&self $(, $arg: $type)*) $(-> $result)? {
            $to!(self $name ($($arg),*))
        }
        $crate::forward_methods! { $to $($more)* }
    };
}
