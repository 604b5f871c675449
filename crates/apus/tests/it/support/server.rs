//! A serving process of the command on the loopback interface.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

/// A process that serves, and that ends with the test.
pub struct Server {
    pub child: Child,
    pub address: String,
    /// Standard error of the process, if [`Server::start`] has started it.
    log: Option<BufReader<ChildStderr>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `apus serve` on a free port. Its log goes to that of the test.
pub fn serve(arguments: &[&str]) -> Server {
    started(Command::new(env!("CARGO_BIN_EXE_apus")), arguments)
}

fn started(mut command: Command, arguments: &[&str]) -> Server {
    command.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("serve");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
    let log = child.stderr.take().map(BufReader::new);
    Server { child, address, log }
}

impl Server {
    /// Starts `apus serve --insecure` with these environment variables; the test reads its log.
    pub fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
        command.env_remove("RUST_LOG").env_remove("NOTIFY_SOCKET");
        command.envs(environment.iter().copied()).stderr(Stdio::piped());
        started(command, &[&["--insecure"], arguments].concat())
    }

    /// Returns a server from a process that serves at this address.
    pub fn of(child: Child, address: String) -> Self {
        Self { child, address, log: None }
    }

    /// Sends a signal, such as `-TERM`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }

    /// Returns the next line of the log.
    pub fn log_line(&mut self) -> String {
        let mut line = String::new();
        let log = self.log.as_mut().expect("a log");
        assert_ne!(log.read_line(&mut line).expect("a line"), 0, "the server has ended");
        line
    }

    /// Waits until the process ends. Returns the exit code and the rest of the log.
    pub fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().expect("its end").code();
        let mut log = String::new();
        let rest = self.log.as_mut().map(|rest| rest.read_to_string(&mut log));
        rest.transpose().expect("its log");
        (code, log)
    }
}
