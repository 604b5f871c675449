//! Matrices of a page: one byte per cell in base64, with the value that the largest byte stands for.

use serde_json::{Value, json};

/// The largest byte.
const MOST: f64 = 255.0;

/// Returns rows of values as bytes in proportion to the largest value, which is part of the result.
pub(super) fn linear(rows: &[Vec<f64>]) -> Value {
    let most = rows.iter().flatten().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let byte = |value: &f64| if most > 0.0 { (value / most * MOST).round() as u8 } else { 0 };
    let bytes: Vec<u8> = rows.iter().flatten().map(byte).collect();
    json!({ "most": super::short(most), "cells": base64(&bytes) })
}

/// Returns the counts that are not zero, each with row and column.
pub(super) fn sparse(rows: &[Vec<u32>]) -> Value {
    let mut cells = Vec::new();
    for (row, values) in rows.iter().enumerate() {
        for (column, &count) in values.iter().enumerate().filter(|(_, count)| **count > 0) {
            cells.extend([row as u64, column as u64, u64::from(count)]);
        }
    }
    json!(cells)
}

/// Returns bytes as base64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .enumerate()
            .fold(0u32, |word, (place, byte)| word | u32::from(*byte) << (16 - 8 * place));
        for digit in 0..4 {
            let shown = digit <= chunk.len();
            text.push(if shown {
                char::from(DIGITS[(word >> (18 - 6 * digit)) as usize & 63])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64, linear, sparse};

    /// The test vectors of RFC 4648, section 10.
    #[test]
    fn base64_is_that_of_rfc_4648() {
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let coded = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        assert_eq!(texts.map(|text| base64(text.as_bytes())), coded);
    }

    #[test]
    fn cells_are_in_proportion_to_the_largest() {
        // 255 / 2 rounds to 128; base64 of 0, 128, 255.
        let matrix = linear(&[vec![0.0, 2.0, 4.0]]);
        assert_eq!((matrix["most"].as_f64(), matrix["cells"].as_str()), (Some(4.0), Some("AID/")));
        assert_eq!(linear(&[vec![0.0]])["cells"], "AA==");
        assert_eq!(sparse(&[vec![0, 0], vec![0, 7]]), serde_json::json!([1, 1, 7]));
    }
}
