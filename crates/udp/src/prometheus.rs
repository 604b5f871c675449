//! Metrics for Prometheus: the text format 0.0.4, and a small HTTP server.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A count that only grows. Its name ends in `_total`.
    Counter,
    /// A value that rises and falls.
    Gauge,
    /// Quantiles of observations.
    Summary,
}

/// A page of metrics. The name of a metric contains its unit, which is a base unit as Prometheus recommends: seconds, bytes.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    metric: String,
}

impl Page {
    /// Returns an empty page.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a metric, whose samples follow. `name` consists of letters, digits, `_` and `:`, and does not begin with a digit.
    pub fn metric(&mut self, name: &str, kind: Kind, help: &str) -> &mut Self {
        debug_assert!(is_name(name), "`{name}` is not a metric name");
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Summary => "summary",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string cannot fail, here and below.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        name.clone_into(&mut self.metric);
        self
    }

    /// Adds a sample of the current metric.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        self.line("", labels, value)
    }

    /// Adds the sum of a summary.
    pub fn sum(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        self.line("_sum", labels, value)
    }

    /// Adds the count of a summary.
    pub fn count(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        self.line("_count", labels, value)
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) -> &mut Self {
        let _ = write!(self.text, "{}{suffix}", self.metric);
        for (index, (name, value)) in labels.iter().enumerate() {
            debug_assert!(is_name(name), "`{name}` is not a label name");
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{name}=\"{value}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = match value {
            f64::INFINITY => writeln!(self.text, "{end} +Inf"),
            f64::NEG_INFINITY => writeln!(self.text, "{end} -Inf"),
            value => writeln!(self.text, "{end} {value}"),
        };
        self
    }

    /// Returns the text of the page.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    name.chars().all(allowed) && name.chars().next().is_some_and(|c| !c.is_ascii_digit())
}

/// Maximum time for a client's request and its answer together, and maximum length of a request. deviation: no source;
/// scrapers use a local network.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_REQUEST_BYTES: usize = 8192;

/// An HTTP server for the page `/metrics`. It has its own thread and serves one client at a time. Dropping it stops the server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at `address` and calls `page` for each request of the page.
    ///
    /// # Errors
    /// If the address cannot be bound, or no thread can be started.
    pub fn start(
        address: SocketAddr,
        page: impl Fn() -> String + Send + 'static,
    ) -> io::Result<Self> {
        Self::start_with(address, page, CLIENT_TIMEOUT)
    }

    /// As [`Server::start`], with a time limit of `time` for each client.
    fn start_with(
        address: SocketAddr,
        page: impl Fn() -> String + Send + 'static,
        time: Duration,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread =
            std::thread::Builder::new().name("apus-metrics".to_owned()).spawn(move || {
                for client in listener.incoming() {
                    if stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    // A failure affects one client only.
                    let _ = client.and_then(|client| answer(Timed::new(client, time), &page));
                }
            })?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Returns the address of the server. If port 0 was given, it contains the port that the system chose.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread, which waits for a client.
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        if TcpStream::connect_timeout(&address, CLIENT_TIMEOUT).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// A client with a time limit for all its reads and writes together, so that a slow client cannot delay the next ones
/// further.
struct Timed {
    stream: TcpStream,
    until: Instant,
}

impl Timed {
    fn new(stream: TcpStream, time: Duration) -> Self {
        Self { stream, until: Instant::now() + time }
    }

    /// Returns the remaining time.
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(bytes)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn answer(mut client: impl Read + Write, page: &impl Fn() -> String) -> io::Result<()> {
    let mut request = Vec::new();
    let mut chunk = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = client.read(&mut chunk)?;
        if read == 0 || request.len() + read > MAX_REQUEST_BYTES {
            return Ok(());
        }
        request.extend_from_slice(&chunk[..read]);
    }
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let (status, kind, body) = match line.split(|&byte| byte == b' ').collect::<Vec<_>>()[..] {
        [b"GET", b"/metrics", _] => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", page()),
        [b"GET", ..] => ("404 Not Found", "text/plain", "the metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET\n".to_owned()),
    };
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example page of the format's documentation, without histograms.
    #[test]
    fn a_page_has_the_text_format_0_0_4() {
        let mut page = Page::new();
        page.metric("http_requests_total", Kind::Counter, "The total number of HTTP requests.")
            .sample(&[("method", "post"), ("code", "200")], 1027.0)
            .sample(&[("method", "post"), ("code", "400")], 3.0);
        page.metric("msdos_file_access_time_seconds", Kind::Gauge, "Last \\ access\nof it").sample(
            &[("path", "C:\\DIR\\FILE.TXT"), ("error", "Cannot find file:\n\"FILE.TXT\"")],
            1.458e9,
        );
        page.metric("something_weird", Kind::Gauge, "w")
            .sample(&[("problem", "division by zero")], f64::INFINITY)
            .sample(&[], f64::NAN);
        page.metric("rpc_duration_seconds", Kind::Summary, "A summary")
            .sample(&[("quantile", "0.5")], 4773.0)
            .count(&[], 2693.0);
        let expected = r#"# HELP http_requests_total The total number of HTTP requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027
http_requests_total{method="post",code="400"} 3
# HELP msdos_file_access_time_seconds Last \\ access\nof it
# TYPE msdos_file_access_time_seconds gauge
msdos_file_access_time_seconds{path="C:\\DIR\\FILE.TXT",error="Cannot find file:\n\"FILE.TXT\""} 1458000000
# HELP something_weird w
# TYPE something_weird gauge
something_weird{problem="division by zero"} +Inf
something_weird NaN
# HELP rpc_duration_seconds A summary
# TYPE rpc_duration_seconds summary
rpc_duration_seconds{quantile="0.5"} 4773
rpc_duration_seconds_count 2693
"#;
        assert_eq!(page.finish(), expected);
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        try_ask(address, request).unwrap()
    }

    fn try_ask(address: SocketAddr, request: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    #[test]
    fn a_scrape_gets_the_page_and_other_requests_get_an_error() {
        let any = "127.0.0.1:0".parse().unwrap();
        let server = Server::start(any, || "apus_up 1\n".to_owned()).unwrap();
        let answer = ask(server.address(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
        assert!(answer.ends_with("Content-Length: 10\r\nConnection: close\r\n\r\napus_up 1\n"));
        assert!(ask(server.address(), "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(
            ask(server.address(), "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405")
        );
        assert_eq!(ask(server.address(), "\r\n\r\n\r\n").split(' ').nth(1), Some("405"));
        drop(TcpStream::connect(server.address()).unwrap());
        let answer = ask(server.address(), "GET /metrics HTTP/1.0\r\n\r\n");
        assert!(answer.ends_with("apus_up 1\n"), "a client that disconnects early has no effect");
        let address = server.address();
        drop(server);
        assert!(TcpStream::connect(address).is_err(), "the server has stopped");
    }

    /// A client whose request arrives in pieces.
    struct Client {
        request: Vec<u8>,
        piece: usize,
        answer: Vec<u8>,
    }

    impl Read for Client {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let length = self.request.len().min(self.piece).min(bytes.len());
            bytes[..length].copy_from_slice(&self.request[..length]);
            self.request.drain(..length);
            Ok(length)
        }
    }

    impl Write for Client {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.answer.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Words and line ends of requests between arbitrary bytes.
    fn part() -> impl Strategy<Value = Vec<u8>> {
        let word = |text: &'static str| Just(text.as_bytes().to_vec());
        prop_oneof![
            word("GET /metrics HTTP/1.1\r\n"),
            word("GET "),
            word("/metrics "),
            word("HTTP/1.1"),
            word("\r\n"),
            word("\r\n\r\n"),
            proptest::collection::vec(any::<u8>(), 0..40),
            (0..10_000usize).prop_map(|length| vec![b'x'; length]),
        ]
    }

    proptest! {
        /// Only a request that ends within the limit is answered, and only the request of the page with the page.
        #[test]
        fn arbitrary_bytes_get_one_answer_or_none(
            parts in proptest::collection::vec(part(), 0..8),
            piece in 1..1500usize,
        ) {
            let request = parts.concat();
            let mut client = Client { request: request.clone(), piece, answer: Vec::new() };
            answer(&mut client, &|| "apus_up 1\n".to_owned()).unwrap();
            let text = String::from_utf8(client.answer).unwrap();
            let end = request.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4);
            match end {
                None => prop_assert_eq!(&text, ""),
                Some(end) if end > MAX_REQUEST_BYTES => prop_assert_eq!(&text, ""),
                // What arrives together with the end of the request counts too.
                Some(end) if end + 1024 > MAX_REQUEST_BYTES => {}
                Some(_) => prop_assert!(!text.is_empty()),
            }
            let is_page = text.starts_with("HTTP/1.1 200 OK\r\n");
            prop_assert_eq!(is_page, text.ends_with("\r\n\r\napus_up 1\n"));
            let line: Vec<u8> = request.iter().copied().take_while(|&byte| byte != b'\r').collect();
            let third = line.strip_prefix(b"GET /metrics ");
            let asks = third.is_some_and(|version| !version.contains(&b' '));
            prop_assert!(text.is_empty() || is_page == asks);
            prop_assert!(is_page || text.is_empty() || text.starts_with("HTTP/1.1 40"));
        }
    }

    /// The client sends a byte of its request every 10 ms while the server accepts them, for at most 80 s.
    #[test]
    fn a_client_that_trickles_its_request_holds_up_no_other_one() {
        let any = "127.0.0.1:0".parse().unwrap();
        let page = || "apus_up 1\n".to_owned();
        let server = Server::start_with(any, page, Duration::from_millis(100)).unwrap();
        let mut slow = TcpStream::connect(server.address()).unwrap();
        let trickle = std::thread::spawn(move || {
            (0..8_000)
                .take_while(|_| {
                    std::thread::sleep(Duration::from_millis(10));
                    slow.write_all(b"x").is_ok()
                })
                .count()
        });
        // The next client waits for its turn. On a busy machine its own time limit may pass before it has sent its
        // request.
        let is_page = |answer: String| answer.ends_with("apus_up 1\n");
        while !try_ask(server.address(), "GET /metrics HTTP/1.1\r\n\r\n").is_ok_and(is_page) {}
        let sent = trickle.join().unwrap();
        assert!(sent < 8_000, "{sent} bytes");
        drop(server);
    }
}
