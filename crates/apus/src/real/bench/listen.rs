//! Servers for measurements between two machines.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use super::contest::END;
use super::spec::{Role, Spec};
use crate::agent::{MAX_LINE, read_line};
use crate::failure::Failure;
use crate::output::print;

/// Starts a server process for each stream; the lines of the stream are its standard input and output. `key` is the
/// text of this machine's key file.
pub fn serve(bind: SocketAddr, key: &str) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Run(format!("{bind}: {error}"));
    let listener = TcpListener::bind(bind).map_err(failed)?;
    print(&format!("listening on {}\n", listener.local_addr().map_err(failed)?))?;
    for stream in listener.incoming().flatten() {
        let key = key.to_owned();
        thread::spawn(move || {
            let peer = stream.peer_addr();
            if let Err(error) = relay(stream, &key) {
                let peer = peer.map_or_else(|_| "a peer".to_owned(), |peer| peer.to_string());
                eprintln!("{peer}: {error}");
            }
        });
    }
    Ok(())
}

/// Forwards lines between a stream and a server process until the stream ends.
fn relay(stream: TcpStream, key: &str) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let here = stream.local_addr()?.ip();
    let mut lines = BufReader::new(stream.try_clone()?);
    let first = read_line(&mut lines, MAX_LINE)?.unwrap_or_default();
    let Ok(Role::Server(spec)) = serde_json::from_str(&first) else {
        return Err(io::Error::other("this is no `apus bench udp --peer` of this version"));
    };
    let role = Role::Server(Spec { bind: here, key: key.to_owned(), ..spec });
    let mut command = Command::new(env::current_exe()?);
    let mut child = command.arg(END).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("a process has no pipes"));
    };
    let mut answers = stream;
    let answering = thread::spawn(move || {
        // When the peer ends, its stream ends too.
        let _ = io::copy(&mut output, &mut answers);
        let _ = answers.shutdown(std::net::Shutdown::Both);
    });
    writeln!(input, "{}", serde_json::to_string(&role)?)?;
    // Either end may close first.
    let forwarded = forward(&mut lines, &mut input);
    drop(input);
    let _ = answering.join();
    child.wait()?;
    forwarded
}

/// Forwards lines until one of the two ends closes.
///
/// # Errors
/// If a line is too long or not text.
fn forward(lines: &mut impl BufRead, input: &mut impl Write) -> io::Result<()> {
    loop {
        match read_line(lines, MAX_LINE) {
            Ok(Some(line)) if input.write_all(line.as_bytes()).is_ok() => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error),
            Ok(_) | Err(_) => return Ok(()),
        }
    }
}
