//! Runs the examples, which check their results themselves. The documentation of the crate runs `echo`.

#[path = "../../examples/block_on.rs"]
mod block_on;
#[path = "../../examples/copy.rs"]
#[allow(dead_code, reason = "the command line is not tested")]
mod copy;
#[path = "../../examples/kv.rs"]
mod kv;
#[path = "../../examples/tokio.rs"]
mod on_tokio;

use std::fs;

use crate::pair::pair;
use crate::support::pattern;

#[test]
fn key_value_store_runs() {
    kv::main().expect("the example");
}

#[test]
fn futures_run_on_tokio_and_without_a_runtime() {
    on_tokio::main().expect("the example");
    block_on::main().expect("the example");
}

#[test]
fn files_are_copied_there_and_back() {
    let folder = std::env::temp_dir().join(format!("apus-rpc-copy-{}", std::process::id()));
    let served = folder.join("served");
    fs::create_dir_all(&served).expect("a folder");
    let (here, back) = (folder.join("file.bin"), folder.join("back.bin"));
    let bytes = pattern(1, 5_000_000);
    fs::write(&here, &bytes).expect("a file");
    let pair = pair(copy::methods(&served));
    copy::put(&pair.client, &here).expect("put");
    copy::get(&pair.client, "file.bin", &back).expect("get");
    assert!(fs::read(&back).expect("a copy") == bytes);
    for name in ["missing", "../file.bin", ""] {
        assert!(copy::get(&pair.client, name, &back).is_err(), "`{name}`");
    }
    fs::remove_dir_all(&folder).expect("removed");
}
