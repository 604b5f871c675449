//! The network: namespaces joined by veth pairs, with HTB at every switch port, and netem on links with a long delay.
//!
//! The namespaces are files below `/run/netns` in a mount namespace of our own, and the processes live in a PID
//! namespace of our own. When its first process ends, for whatever reason, the kernel removes everything.

use std::env;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::spec::{Link, Node, PORT, Port, Spec};

/// Queue limit of a port without a limit, in bytes: no run reaches it.
const UNLIMITED: u64 = 1 << 30;
/// Maximum number of packets in netem: 20 ms of the smallest packets at 10 Gb/s, or far longer with full ones.
const DELAYED: u64 = 300_000;
/// Folders of `ip` and `tc` on many systems; the PATH of an ordinary user may lack them.
const SYSTEM: [&str; 2] = ["/usr/sbin", "/sbin"];
/// Bytes of an Ethernet header, which HTB counts.
const ETHERNET: u64 = 14;

/// Returns the address of a host.
pub fn address(host: u32) -> String {
    format!("10.1.{}.{}", host / 250, host % 250 + 1)
}

/// Returns the address and port on which a host listens.
pub fn socket(host: u32) -> Result<SocketAddr, String> {
    let address = address(host).parse().map_err(|error| format!("{error}"))?;
    Ok(SocketAddr::new(address, PORT))
}

fn switch_address(switch: u32) -> String {
    format!("10.2.{}.{}", switch / 250, switch % 250 + 1)
}

/// Returns the device of one end of a link, in the namespace of that end.
pub fn device(link: usize, end: char) -> String {
    format!("l{link}{end}")
}

/// Returns a command that runs in the namespace of a node.
pub fn within(node: Node) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{}", node.namespace())).arg("--");
    command
}

/// Creates the network.
///
/// # Errors
/// The message of `ip` or `tc` about a refused command.
pub fn build(spec: &Spec) -> Result<(), String> {
    run(Command::new("mount").args(["-t", "tmpfs", "apus", "/run"]), "")?;
    let hosts = (0..spec.hosts).map(Node::Host);
    let nodes: Vec<Node> = hosts.chain((0..spec.switches).map(Node::Switch)).collect();
    let mut text = String::new();
    for node in &nodes {
        let _ = writeln!(text, "netns add {}", node.namespace());
    }
    for (index, link) in spec.links.iter().enumerate() {
        let (a, b) = (link.a.namespace(), link.b.namespace());
        let (at_a, at_b) = (device(index, 'a'), device(index, 'b'));
        let mtu = spec.mtu;
        let _ = writeln!(
            text,
            "link add name {at_a} mtu {mtu} netns {a} type veth peer name {at_b} mtu {mtu} netns {b}"
        );
    }
    run(Command::new("ip").args(["-batch", "-"]), &text)?;
    for &node in &nodes {
        let name = node.namespace();
        run(Command::new("ip").args(["-n", &name, "-batch", "-"]), &addresses(spec, node))?;
        let queues = disciplines(spec, node);
        if !queues.is_empty() {
            run(Command::new("tc").args(["-n", &name, "-batch", "-"]), &queues)?;
        }
        let settings = match node {
            // Lets a sender fill the buffers that scenarios have.
            Node::Host(_) => {
                "echo 4096 131072 67108864 > /proc/sys/net/ipv4/tcp_rmem; \
                 echo 4096 131072 67108864 > /proc/sys/net/ipv4/tcp_wmem"
            }
            Node::Switch(_) => "echo 1 > /proc/sys/net/ipv4/ip_forward",
        };
        run(within(node).args(["sh", "-ec", settings]), "")?;
    }
    Ok(())
}

/// Returns the link ends at a node: link, device, neighbour and port.
fn ends(spec: &Spec, node: Node) -> impl Iterator<Item = (usize, String, Node, &Port)> {
    spec.links.iter().enumerate().flat_map(move |(index, Link { a, b, ab, ba, .. })| {
        let at_a = (*a == node).then(|| (index, device(index, 'a'), *b, ab));
        let at_b = (*b == node).then(|| (index, device(index, 'b'), *a, ba));
        at_a.into_iter().chain(at_b)
    })
}

fn addresses(spec: &Spec, node: Node) -> String {
    let mut text = String::from("link set dev lo up\n");
    let own = match node {
        Node::Host(host) => address(host),
        Node::Switch(switch) => switch_address(switch),
    };
    let _ = writeln!(text, "addr add {own}/32 dev lo");
    for (_, device, peer, _) in ends(spec, node) {
        let _ = writeln!(text, "link set dev {device} up");
        let peer_address = match peer {
            Node::Host(host) => address(host),
            Node::Switch(switch) => switch_address(switch),
        };
        let _ = writeln!(text, "route add {peer_address}/32 dev {device} scope link src {own}");
        if let Node::Host(_) = node {
            let _ = writeln!(text, "route add default via {peer_address} dev {device} src {own}");
        }
    }
    if let Node::Switch(switch) = node {
        for route in &spec.routes[switch as usize] {
            let link = &spec.links[route.link];
            let end = if link.a == node { 'a' } else { 'b' };
            let (host, next) = (address(route.host), switch_address(route.next));
            let _ =
                writeln!(text, "route add {host}/32 via {next} dev {}", device(route.link, end));
        }
    }
    text
}

/// Returns the commands for HTB with one class and a queue in bytes at every switch port. On links with their own
/// delay, netem precedes the queue; at the ports of hosts it stands alone.
fn disciplines(spec: &Spec, node: Node) -> String {
    let mut text = String::new();
    let frame = u64::from(spec.mtu) + ETHERNET;
    for (link, device, _, port) in ends(spec, node) {
        let delay = spec.links[link].delay_ns;
        let netem = format!("netem delay {}us limit {DELAYED}", delay as f64 / 1e3);
        if let Node::Host(_) = node {
            if delay > 0 {
                let _ = writeln!(text, "qdisc add dev {device} root handle 1: {netem}");
            }
            continue;
        }
        // deviation: no source; bytes that may leave at once: two packets, or the bytes of 100 us at the port's rate.
        let burst = (2 * frame).max(port.rate / 8 / 10_000);
        let buffer = port.buffer.unwrap_or(UNLIMITED);
        let rate = port.rate;
        let _ = writeln!(text, "qdisc add dev {device} root handle 1: htb default 1");
        let _ = writeln!(
            text,
            "class add dev {device} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit \
             burst {burst} cburst {burst} quantum {frame}"
        );
        let mut parent = "1:1";
        if delay > 0 {
            let _ = writeln!(text, "qdisc add dev {device} parent 1:1 handle 3: {netem}");
            parent = "3:1";
        }
        let _ =
            writeln!(text, "qdisc add dev {device} parent {parent} handle 2: bfifo limit {buffer}");
    }
    text
}

/// Checks that this kernel has netem.
///
/// # Errors
/// The message of `tc`.
pub fn can_delay() -> Result<(), String> {
    let tc = ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"];
    run(unshare().arg("--net").args(tc), "").map(drop)
}

/// Returns a command in new namespaces, as an ordinary user or as root. The command and its children find the programs
/// in [`SYSTEM`].
pub fn unshare() -> Command {
    let mut command = Command::new("unshare");
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(SYSTEM.iter().map(PathBuf::from));
    // If the PATH cannot be extended, it stays as it is.
    if let Ok(path) = env::join_paths(folders) {
        command.env("PATH", path);
    }
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command
}

/// Runs a command with this input and returns its output.
pub fn run(command: &mut Command, input: &str) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let missing = |error| format!("{program} cannot be run: {error}; {}", needs());
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(missing)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its input reports the reason itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} failed: {}", said.trim()))
}

/// Returns the requirements of an emulation on the machine.
pub fn needs() -> &'static str {
    "`apus emulate` needs Linux with veth and HTB, the programs unshare, nsenter and mount \
     (util-linux), ip and tc (iproute2), and root or user namespaces \
     (kernel.unprivileged_userns_clone=1, and kernel.apparmor_restrict_unprivileged_userns=0 where \
     there is AppArmor)"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulate::spec::Stack;

    fn spec(delay_ns: u64) -> Spec {
        let port =
            |name: &str| Port { name: name.to_owned(), rate: 1_000_000_000, buffer: Some(50_000) };
        let link = |host| Link {
            a: Node::Host(host),
            b: Node::Switch(0),
            ab: port("up"),
            ba: port("down"),
            delay_ns,
        };
        Spec {
            name: String::new(),
            stack: Stack::Apus,
            hosts: 2,
            switches: 1,
            links: (0..2).map(link).collect(),
            routes: vec![Vec::new()],
            mtu: 1500,
            agents: Vec::new(),
        }
    }

    /// tc-htb(8), tc-bfifo(8), tc-netem(8); 12,500 B are 100 us at 1 Gb/s.
    #[test]
    fn ports_of_switches_are_shaped_and_links_with_a_delay_have_netem_both_ways() {
        let short = spec(0);
        assert_eq!(disciplines(&short, Node::Host(0)), "");
        let of_switch = disciplines(&short, Node::Switch(0));
        let first: Vec<&str> = of_switch.lines().take(3).collect();
        assert_eq!(
            first,
            [
                "qdisc add dev l0b root handle 1: htb default 1",
                "class add dev l0b parent 1: classid 1:1 htb rate 1000000000bit ceil 1000000000bit \
                 burst 12500 cburst 12500 quantum 1514",
                "qdisc add dev l0b parent 1:1 handle 2: bfifo limit 50000",
            ]
        );
        let long = spec(25_500_000);
        assert_eq!(
            disciplines(&long, Node::Host(1)),
            "qdisc add dev l1a root handle 1: netem delay 25500us limit 300000\n"
        );
        let of_switch = disciplines(&long, Node::Switch(0));
        let first: Vec<&str> = of_switch.lines().skip(2).take(2).collect();
        assert_eq!(
            first,
            [
                "qdisc add dev l0b parent 1:1 handle 3: netem delay 25500us limit 300000",
                "qdisc add dev l0b parent 3:1 handle 2: bfifo limit 50000",
            ]
        );
    }
}
