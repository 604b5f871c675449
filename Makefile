# The two commands of the README, and the ones that CONTRIBUTING.md names.
.PHONY: demo test lint bench fuzz

APUS = $(or $(CARGO_TARGET_DIR),target)/release/apus

# Builds the command and reproduces Table 3 of the Swift paper: a 5000-to-1 incast.
demo: $(APUS)
	$(APUS) reproduce swift/table3

# Everything that CI checks.
test: lint
	cargo test --workspace --locked
	cargo build --release --locked -p apus
	$(APUS) reproduce --all --quick
	tools/instructions-per-hop $(APUS)

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

# The engine's benchmarks and the instructions per packet-hop.
bench: $(APUS)
	$(APUS) bench
	cargo bench --workspace --locked

# Five minutes of coverage-guided fuzzing per target; needs `cargo install cargo-fuzz` and a nightly
# toolchain.
fuzz:
	for target in $$(cd fuzz && cargo +nightly fuzz list); do \
		(cd fuzz && mkdir -p corpus/$$target seeds/$$target && \
		 cargo +nightly fuzz run $$target corpus/$$target seeds/$$target -- -max_total_time=300) || exit 1; \
	done

.PHONY: $(APUS)
$(APUS):
	cargo build --release --locked -p apus
