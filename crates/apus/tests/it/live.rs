//! `apus run --live` on a pseudo-terminal.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::spawn;

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::support::command::folder;
use crate::support::{begun, until};

/// Takes minutes of real time, so that it can be interrupted.
const LONG: &str = r#"
duration = "60s"
topology = { kind = "star", hosts = 4, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "incast"
size = "64kB"
"#;

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns `true` if the terminal passes on each key at once, without editing and echo.
fn is_raw(terminal: &File) -> bool {
    !tcgetattr(terminal).expect("its modes").local_modes.contains(LocalModes::ICANON)
}

/// Starts the long run on a terminal, and calls `request` with the process and the terminal once the run is shown. The
/// request must end the run, and the command must print its results and restore the terminal.
fn assert_ends(name: &str, request: impl FnOnce(&Child, &mut File)) {
    let folder = folder(name);
    fs::write(folder.join("long.toml"), LONG).expect("file");
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let terminal = openpt(flags).expect("a terminal");
    unlockpt(&terminal).expect("a terminal");
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("its size");
    let input = ioctl_tiocgptpeer(&terminal, flags).expect("the end of the process");
    let errors = input.try_clone().expect("a descriptor");
    let mut terminal = File::from(terminal);
    assert!(!is_raw(&terminal));

    // `setsid` makes it the controlling terminal of the process, from which the command reads its size.
    let mut command = Command::new("setsid");
    command.args(["--ctty", env!("CARGO_BIN_EXE_apus"), "run", "long.toml", "--live"]);
    command.current_dir(&folder).stdin(input).stdout(Stdio::piped()).stderr(errors);
    let mut process = Process(command.spawn().expect("setsid"));
    // This closes the end of the process here, so that reading ends with the process.
    drop(command);
    let mut reader = terminal.try_clone().expect("a descriptor");
    let written = spawn(move || {
        let mut bytes = Vec::new();
        // Reading ends with an error when the process has closed its end.
        let _ = reader.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    until("the terminal is in raw mode", || is_raw(&terminal));
    begun(&mut process.0);
    request(&process.0, &mut terminal);

    let mut printed = String::new();
    let mut output = process.0.stdout.take().expect("standard output");
    output.read_to_string(&mut printed).expect("standard output");
    let code = process.0.wait().expect("its end").code();
    assert!(!is_raw(&terminal), "the terminal is in raw mode");
    let written = written.join().expect("a thread");
    assert_eq!(code, Some(130), "{written}");
    // The sequences of xterm that open and close the alternate screen, and that hide and show the cursor.
    for (set, reset) in [("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?25l", "\x1b[?25h")] {
        assert!(written.contains(set), "{written}");
        assert!(written.rfind(set) < written.rfind(reset), "{written}");
    }
    assert!(printed.contains("goodput"), "{printed}");
    assert!(written.contains("interrupted; results are partial"), "{written}");
}

#[test]
fn a_key_ends_the_run_and_restores_the_terminal() {
    assert_ends("key", |_, terminal| terminal.write_all(b"q").expect("a key"));
}

#[test]
fn a_signal_ends_the_run_and_restores_the_terminal() {
    assert_ends("signal", |process, _| {
        let id = process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
    });
}
