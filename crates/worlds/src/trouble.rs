//! Start and end of faults.

use std::sync::atomic::Ordering;

use apus_units::{Span, Time};

use crate::fault::Trouble;
use crate::world::{Event, World};

impl Trouble {
    /// Returns `true` if an adversary of the fault uses recorded datagrams.
    pub(crate) fn needs_captures(&self) -> bool {
        matches!(self, Self::Replay(_) | Self::Forge(_) | Self::Flood(..))
    }
}

impl World<'_> {
    /// Returns `false` for a fault that changes nothing in this world or in this build.
    fn has_effect(&self, what: &Trouble) -> bool {
        let has_port = |host: usize, port: u8| {
            let ports = self.plan.hosts[host].ports.as_ref().and_then(|ports| ports.balancer);
            port == 0 || ports.is_some_and(|(_, count)| u16::from(port) < count)
        };
        match *what {
            // A build that does not unwind would end with the engine.
            Trouble::Panic(_) => cfg!(panic = "unwind"),
            Trouble::Rotate => self.plan.sealed && !self.key.1,
            Trouble::LoseKey(_) => self.plan.sealed,
            Trouble::Unlist(..) | Trouble::Deny(..) => self.identities.is_some(),
            Trouble::Replace(host) => {
                self.identities.as_ref().is_some_and(|all| !all.is_replacing(host))
            }
            Trouble::LosePort(host, port, _)
            | Trouble::DelayPort(host, port, _)
            | Trouble::NarrowPort(host, port, _)
            | Trouble::RebindPort(host, port) => has_port(host, port),
            _ => true,
        }
    }

    pub(crate) fn begin_fault(&mut self, number: usize) {
        if self.quiet {
            return;
        }
        let fault = &self.plan.faults[number];
        self.counts.faults += u64::from(self.has_effect(&fault.what));
        self.log.note(self.now, || format!("fault {number}: {fault}"));
        self.active[number] = true;
        let until = self.now + fault.lasts;
        match fault.what {
            Trouble::Interface(host, mtu) => {
                let machine = &mut self.machines[host];
                machine.interface = machine.interface.min(mtu);
                machine.set_kernel();
            }
            Trouble::Rebind(host) => {
                let port = 20_000 + number as u16;
                let address = ([10, 1, 0, host as u8 + 1], port).into();
                self.owners.insert(address, host);
                self.machines[host].external = Some(address);
            }
            Trouble::Pause(host) => {
                let machine = &mut self.machines[host];
                machine.paused_until = machine.paused_until.max(until);
            }
            Trouble::Crash(host, datagrams) => {
                self.machines[host].crash_after = Some((datagrams, fault.lasts));
            }
            Trouble::Restart(host) => self.push(self.now, Event::Stop(host)),
            Trouble::Drain(host) => {
                if let Some(up) = &self.machines[host].host {
                    up.drain();
                }
                self.wake_commanded(host);
                let until = until.min(self.now + Span::from_secs(2));
                self.push(until, Event::Stop(host));
            }
            Trouble::Jump(host, by) => self.jump(host, by),
            Trouble::Stamps(host, by) => self.machines[host].stamp_error = by,
            Trouble::Full(host) => {
                let machine = &mut self.machines[host];
                machine.full_until = machine.full_until.max(until);
                if let Some(up) = &machine.host {
                    up.set_full(true);
                }
            }
            Trouble::Slow(host) => {
                let machine = &mut self.machines[host];
                machine.slow_until = machine.slow_until.max(until);
            }
            Trouble::Panic(host) if cfg!(panic = "unwind") => {
                let machine = &mut self.machines[host];
                machine.panicked = true;
                machine.bomb.armed.store(true, Ordering::Relaxed);
            }
            Trouble::Shrink(host) => {
                self.machines[host].bomb.short.store(true, Ordering::Relaxed);
                self.ledger.set_short(self.machines[host].of(), self.now);
            }
            Trouble::Close(host, peer) => {
                self.machines[host].app.close(peer);
                self.wake_commanded(host);
            }
            Trouble::Withdraw(host, at_once) => {
                let of = self.machines[host].of();
                if let Some(regions) = self.ledger.regions.get(&of) {
                    for region in [&regions.slots, &regions.pattern, &regions.words] {
                        if at_once { region.revoke() } else { region.withdraw() }
                    }
                    self.ledger.withdrawn.insert(of);
                }
            }
            Trouble::Rotate if self.plan.sealed && !self.key.1 => {
                self.key = (self.key.0 + 1, true);
                self.give_keys();
                let after = fault.lasts.min(Span::from_secs(2));
                self.push(self.now + after, Event::Forget);
            }
            Trouble::LoseKey(host) if self.plan.sealed => {
                self.machines[host].keyless = true;
                self.give_keys();
            }
            Trouble::Unlist(..) => self.give_keys(),
            Trouble::Replace(host) => self.replace_pair(host, fault.lasts / 5),
            Trouble::Deny(host, peer) => self.deny(number, host, peer),
            Trouble::Forge(_)
            | Trouble::Flood(..)
            | Trouble::Insider(..)
            | Trouble::InformedInsider(..) => {
                self.push(self.now, Event::Act(number));
            }
            _ => {}
        }
        self.push(until, Event::End(number));
    }

    pub(crate) fn end_fault(&mut self, number: usize) {
        if !std::mem::take(&mut self.active[number]) {
            return;
        }
        match self.plan.faults[number].what {
            Trouble::Interface(host, _) => {
                let machine = &mut self.machines[host];
                machine.interface = machine.plan.mtu;
                machine.set_kernel();
            }
            Trouble::Stamps(host, _) => self.machines[host].stamp_error = Span::ZERO,
            // Peers that request a connection expect answers from the address that they know.
            Trouble::Rebind(host) => self.machines[host].external = None,
            Trouble::Full(host) => self.end_full(host),
            Trouble::Shrink(host) => {
                self.machines[host].bomb.short.store(false, Ordering::Relaxed);
                self.ledger.end_short(self.machines[host].of(), self.now);
            }
            Trouble::Unlist(host, peer) => self.end_unlisting(host, peer),
            Trouble::Deny(host, peer) => self.end_denial(number, host, peer),
            Trouble::LoseKey(host) => {
                self.machines[host].keyless = false;
                self.give_keys();
            }
            _ => {}
        }
    }

    /// Ends the shortage of room in the socket of a host. This ends the sleep of the engines that wait for
    /// room, and of no others.
    fn end_full(&mut self, host: usize) {
        if self.machines[host].full_until > self.now {
            return;
        }
        if let Some(up) = &self.machines[host].host {
            up.set_full(false);
        }
        for engine in 0..self.machines[host].sockets.len() {
            if self.machines[host].sockets[engine].sending {
                self.schedule_run(host, engine, self.now);
            }
        }
    }

    /// Applies the active faults to a host that starts.
    pub(crate) fn restore_faults(&mut self, host: usize) {
        let machine = &mut self.machines[host];
        machine.panicked = false;
        if machine.full_until > self.now
            && let Some(up) = &machine.host
        {
            up.set_full(true);
        }
        let keyless = self.active.iter().zip(&self.plan.faults);
        let keyless = keyless
            .filter(|(active, _)| **active)
            .any(|(_, fault)| fault.what == Trouble::LoseKey(host));
        if keyless && self.plan.sealed {
            self.machines[host].keyless = true;
            self.give_keys();
        }
    }

    /// Applies faults that act in single steps of a host.
    pub(crate) fn before_step(&mut self, host: usize) {
        for number in 0..self.active.len() {
            if !self.active[number] {
                continue;
            }
            let (errno, sends) = match self.plan.faults[number].what {
                Trouble::SendErrors(of, errno, share) if of == host => {
                    (self.random.chance(share).then_some(errno), true)
                }
                Trouble::ReceiveErrors(of, errno) if of == host => {
                    (self.random.chance(300).then_some(errno), false)
                }
                _ => continue,
            };
            let (Some(errno), Some(up)) = (errno, &self.machines[host].host) else { continue };
            for engine in 0..up.engines() {
                if sends {
                    up.fail_sends(engine, [errno]);
                } else {
                    up.fail_receives(engine, [errno]);
                }
            }
        }
    }

    fn jump(&mut self, host: usize, by: Span) {
        let now = self.now;
        self.machines[host].clock.jump(now, by);
        for engine in 0..self.machines[host].sockets.len() {
            if let Some(due) = self.machines[host].sockets[engine].asleep {
                let at = self.machines[host].clock.when(due);
                self.schedule_run(host, engine, at);
            }
        }
    }

    /// Gives all hosts their current key ring; hosts that lack the key get another one.
    pub(crate) fn give_keys(&mut self) {
        for host in 0..self.machines.len() {
            if let Some(up) = &self.machines[host].host {
                up.set_keys(&self.ring(host));
            }
            self.wake_commanded(host);
        }
    }

    /// Removes the key before the current one.
    pub(crate) fn forget_key(&mut self) {
        self.key.1 = false;
        self.give_keys();
    }

    /// Ends all faults.
    pub(crate) fn become_quiet(&mut self) {
        self.quiet = true;
        self.log.note(self.now, || "faults stop".to_owned());
        let now = self.now;
        for host in 0..self.machines.len() {
            let machine = &mut self.machines[host];
            let paused = std::mem::replace(&mut machine.paused_until, Time::ZERO) > now;
            machine.slow_until = Time::ZERO;
            machine.full_until = Time::ZERO;
            machine.crash_after = None;
            machine.bomb.armed.store(false, Ordering::Relaxed);
            if let Some(up) = &machine.host {
                up.end_failures();
            }
            // Only runs that the pause has postponed are scheduled: an engine that sleeps without a deadline
            // stays asleep.
            for engine in 0..machine.sockets.len() {
                if paused && self.machines[host].sockets[engine].run_at.take().is_some() {
                    self.schedule_run(host, engine, now);
                }
            }
            self.machines[host].app_at = None;
            self.schedule_app(host, now);
        }
        for number in 0..self.active.len() {
            self.end_fault(number);
        }
        if self.key.1 {
            self.forget_key();
        }
        self.end_replacements();
        for host in 0..self.machines.len() {
            self.start(host);
        }
    }
}
