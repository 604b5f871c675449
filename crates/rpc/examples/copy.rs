//! Copies files to and from a server, with a progress bar.
//!
//! ```sh
//! apus key shared.key                                    # once, for both machines
//! copy serve shared.key 0.0.0.0:48700 /srv/files         # on the server
//! copy put shared.key SERVER:48700 big.iso               # on the client
//! copy get shared.key SERVER:48700 big.iso copy.iso
//! ```

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use apus_rpc::{BodyReader, BodyWriter, Client, Failure, Methods, Reply, Server};
use apus_udp::{Config, Host, keyfile};
use indicatif::{ProgressBar, ProgressStyle};

/// Results of this program.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Bytes per read of a file.
const PIECE: usize = 256 << 10;

/// Returns the path of a file in the server's folder. Names must not refer to files outside it.
fn path_in(folder: &Path, name: &[u8]) -> std::result::Result<PathBuf, Failure> {
    let name = std::str::from_utf8(name)?;
    let is_plain = !name.is_empty() && !name.starts_with('.') && !name.contains('/');
    if is_plain { Ok(folder.join(name)) } else { Err(Failure::new(1, "not a plain file name")) }
}

fn read_from(body: &mut BodyReader, file: &mut File, bar: &ProgressBar) -> io::Result<()> {
    while let Some(chunk) = body.next_chunk().map_err(io::Error::other)? {
        file.write_all(&chunk)?;
        bar.inc(chunk.len() as u64);
    }
    Ok(())
}

fn write_to(mut body: BodyWriter, file: &mut File, bar: &ProgressBar) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            return body.finish().map_err(io::Error::other);
        }
        body.write(&piece[..count]).map_err(io::Error::other)?;
        bar.inc(count as u64);
    }
}

/// Returns the methods of a server of the files of `folder`.
pub fn methods(folder: &Path) -> Methods {
    let (put_folder, get_folder) = (folder.to_owned(), folder.to_owned());
    Methods::new()
        .with("put", move |call| {
            let path = path_in(&put_folder, call.payload())?;
            let mut body = call.body().ok_or(Failure::new(2, "no file follows"))?;
            // A file gets its name only when it is complete.
            let part = path.with_extension("part");
            read_from(&mut body, &mut File::create(&part)?, &ProgressBar::hidden())?;
            Ok(fs::rename(&part, &path)?)
        })
        .with("get", move |call| {
            let mut file = File::open(path_in(&get_folder, call.payload())?)?;
            let body = call.stream("", Some(file.metadata()?.len()))?;
            write_to(body, &mut file, &ProgressBar::hidden())?;
            Ok(Reply::streamed())
        })
}

fn bar(length: u64) -> ProgressBar {
    let style = "{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta}";
    let bar = ProgressBar::new(length);
    ProgressStyle::with_template(style).map_or(bar.clone(), |style| bar.with_style(style))
}

/// Copies a file to the server, which gives it the same name.
pub fn put(client: &Client, file: &Path) -> Result<()> {
    let name = file.file_name().and_then(|name| name.to_str()).ok_or("a file without a name")?;
    let mut file = File::open(file)?;
    let length = file.metadata()?.len();
    let put = client.call(client.method("put")?, name.as_bytes()).stream(Some(length));
    let mut call = put.start()?;
    let (body, bar) = (call.body().ok_or("a call without a body")?, bar(length));
    let written = write_to(body, &mut file, &bar);
    // If the server has given up, its answer contains the reason.
    call.wait()?;
    bar.finish();
    Ok(written?)
}

/// Copies the file of this name from the server.
pub fn get(client: &Client, name: &str, file: &Path) -> Result<()> {
    let mut answer = client.call(client.method("get")?, name.as_bytes()).wait()?;
    let mut body = answer.body().ok_or("an answer without a body")?;
    let bar = bar(body.length().unwrap_or(0));
    read_from(&mut body, &mut File::create(file)?, &bar)?;
    bar.finish();
    Ok(())
}

fn host(key: &str, bind: SocketAddr) -> Result<Arc<Host>> {
    Ok(Arc::new(Host::start(Config::new(bind, keyfile::read(key.as_ref())?)?)?))
}

fn connect(key: &str, server: &str) -> Result<Client> {
    let server = server.to_socket_addrs()?.next().ok_or("no address")?;
    let any = if server.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    Ok(Client::connect(&host(key, any)?, server)?)
}

/// Runs the command.
pub fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(|argument| &**argument).collect();
    match arguments[..] {
        ["serve", key, address, folder] => {
            let host = host(key, address.parse()?)?;
            let _server = Server::start(&host, methods(folder.as_ref()))?;
            loop {
                std::thread::park();
            }
        }
        ["put", key, server, file] => put(&connect(key, server)?, file.as_ref()),
        ["get", key, server, name, file] => get(&connect(key, server)?, name, file.as_ref()),
        _ => {
            Err("serve KEY ADDRESS FOLDER | put KEY SERVER FILE | get KEY SERVER NAME FILE".into())
        }
    }
}
