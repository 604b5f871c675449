-- Wireshark dissector of the Apus wire format (crates/wire/src/lib.rs and crates/udp/src/session).
-- Use: wireshark -X lua_script:tools/wireshark/apus.lua capture.pcapng
-- Or copy it to the personal plugin folder (Help > About Wireshark > Folders).
-- Packets are found by their shape on any UDP port that Wireshark gives to no other protocol (7000 to
-- 7009 are AFS, for example); "Decode As..." picks a port by hand.

local apus = Proto("apus", "Apus transport")

local kinds = {
  [1] = "Write", [2] = "Message", [3] = "ReadRequest", [4] = "ReadResponse", [5] = "Ack",
  [6] = "Cancel", [7] = "Reject", [8] = "CreditRequest", [9] = "Credit", [10] = "CreditStop",
  [11] = "Notification", [12] = "Signal",
  [0x40] = "Hello", [0x41] = "Cookie", [0x42] = "Init", [0x43] = "Response", [0x44] = "Refused",
  [0x45] = "Unknown", [0x46] = "Control",
}
local reasons = {
  [1] = "no such region", [2] = "not allowed", [3] = "out of bounds", [4] = "too long",
  [5] = "region withdrawn under way",
}
local commands = {
  [1] = "ping", [2] = "pong", [3] = "close", [4] = "probe", [5] = "answer to a probe",
}
local refusals = { [1] = "no room", [2] = "refused by the application" }
local modes = { [0] = "insecure", [1] = "sealed" }

local f = {
  extension = ProtoField.uint8("apus.extension", "Congestion extension"),
  version = ProtoField.uint8("apus.version", "Version"),
  kind = ProtoField.uint8("apus.kind", "Kind", base.HEX, kinds),
  flow = ProtoField.uint32("apus.flow", "Flow"),
  seq = ProtoField.uint64("apus.seq", "Packet number"),
  op = ProtoField.uint64("apus.op", "Op"),
  offset = ProtoField.uint64("apus.offset", "Offset in the op"),
  op_length = ProtoField.uint64("apus.op_length", "Bytes of the op"),
  length = ProtoField.uint16("apus.length", "Payload bytes"),
  region = ProtoField.uint64("apus.region", "Region key", base.HEX),
  address = ProtoField.uint64("apus.address", "Address in the region"),
  largest = ProtoField.uint64("apus.ack.largest", "Largest received"),
  bitmap = ProtoField.bytes("apus.ack.bitmap", "Received bitmap"),
  echo = ProtoField.uint64("apus.ack.echo", "Packet whose timing is reported"),
  remote_queuing = ProtoField.uint32("apus.ack.remote_queuing_ns", "Remote queuing (ns)"),
  hops = ProtoField.uint8("apus.ack.hops", "Hops"),
  marked = ProtoField.uint32("apus.ack.marked", "ECN-marked packets"),
  receiver_level = ProtoField.uint8("apus.ack.receiver_level", "Receiver level (of 31)"),
  reason = ProtoField.uint8("apus.reject.reason", "Reason", base.DEC, reasons),
  credited = ProtoField.bool("apus.credited", "Sent for a credit"),
  credit = ProtoField.uint32("apus.credit.number", "Credit"),
  credit_sent = ProtoField.uint32("apus.credit.sent_ns", "Credit left at (ns, modulo 2^32)"),
  queue = ProtoField.uint24("apus.signal.queue", "Queue (bytes)"),
  body = ProtoField.bytes("apus.body", "Body"),
  payload = ProtoField.bytes("apus.payload", "Payload"),
  encrypted = ProtoField.bytes("apus.encrypted", "Payload (encrypted)"),
  tag = ProtoField.bytes("apus.tag", "Tag"),
  checksum = ProtoField.uint32("apus.checksum", "CRC-32C", base.HEX),
  session = ProtoField.uint32("apus.session", "Session", base.HEX),
  number = ProtoField.uint32("apus.number", "Packet number in the session, low half"),
  mode = ProtoField.uint8("apus.handshake.mode", "Mode", base.DEC, modes),
  key = ProtoField.uint64("apus.handshake.key", "Key", base.HEX),
  cookie = ProtoField.bytes("apus.handshake.cookie", "Cookie"),
  noise = ProtoField.bytes("apus.handshake.noise", "Noise message"),
  proof = ProtoField.bytes("apus.handshake.proof", "Proof"),
  refusal = ProtoField.uint8("apus.handshake.refusal", "Refusal", base.DEC, refusals),
  command = ProtoField.uint8("apus.command", "Command", base.DEC, commands),
  probed = ProtoField.uint16("apus.probed", "Length of the probe that has arrived"),
}
apus.fields = f

local malformed = ProtoExpert.new("apus.malformed", "Malformed Apus packet",
  expert.group.MALFORMED, expert.severity.ERROR)
apus.experts = { malformed }

local SEALED_GUARD, INSECURE_GUARD = 24, 12

-- A data packet that was sent for a credit has this much added to its kind.
local CREDITED = 0x80

-- The kind without that, and whether it was there.
local function kind_of(buffer)
  local kind = buffer(2, 1):uint()
  if kind > CREDITED and kind <= CREDITED + 6 and kind ~= CREDITED + 5 then
    return kind - CREDITED, true
  end
  return kind, false
end

-- Bytes of a header without the echo of a credit, by kind; nil if it is none.
local function body_end(buffer, kind)
  if kind == 1 or kind == 3 or kind == 5 then return 57 end
  if kind == 2 or kind == 4 or kind == 6 then return 41 end
  if kind == 7 then return 24 end
  if kind == 8 or kind == 10 or kind == 11 then return 15 end
  if kind == 9 and buffer:len() >= 48 then return 48 + buffer(47, 1):uint() end
  if kind == 12 then return 23 end
  return nil
end

local function header_bytes(buffer, kind, credited)
  local bytes = body_end(buffer, kind)
  return bytes and bytes + (credited and 8 or 0)
end

local function payload_bytes(buffer, kind)
  if kind == 5 or kind >= 7 then return 0 end
  return buffer(39, 2):uint()
end

-- Whether these bytes have the shape of an Apus packet.
local function is_apus(buffer)
  if buffer:len() < 16 or buffer(0, 1):uint() ~= 0 or buffer(1, 1):uint() ~= 1 then
    return false
  end
  local kind, credited = kind_of(buffer)
  if kind >= 0x40 and kind <= 0x45 then return buffer(3, 1):uint() <= 1 end
  if kind == 0x46 then return commands[buffer(3, 1):uint()] ~= nil end
  local header = header_bytes(buffer, kind, credited)
  if header == nil or buffer:len() < header then return false end
  local guard = buffer:reported_len() - header - payload_bytes(buffer, kind)
  return guard == SEALED_GUARD or guard == INSECURE_GUARD
end

local function guard(buffer, tree, from)
  if buffer:len() - from == SEALED_GUARD then
    tree:add(f.tag, buffer(from, 16))
    tree:add(f.session, buffer(from + 16, 4))
    tree:add(f.number, buffer(from + 20, 4))
  elseif buffer:len() - from == INSECURE_GUARD then
    tree:add(f.session, buffer(from, 4))
    tree:add(f.number, buffer(from + 4, 4))
    tree:add(f.checksum, buffer(from + 8, 4))
  else
    tree:add_proto_expert_info(malformed)
  end
end

local function transport(buffer, tree, kind, credited)
  tree:add(f.flow, buffer(3, 4))
  tree:add(f.seq, buffer(7, 8))
  local about = " flow " .. buffer(3, 4):uint() .. " #" .. tostring(buffer(7, 8):uint64())
  if kind == 5 then
    tree:add(f.largest, buffer(15, 8))
    tree:add(f.bitmap, buffer(23, 16))
    tree:add(f.echo, buffer(39, 8))
    tree:add(f.remote_queuing, buffer(47, 4))
    tree:add(f.hops, buffer(51, 1))
    tree:add(f.marked, buffer(52, 4))
    tree:add(f.receiver_level, buffer(56, 1))
    return about .. " acks " .. tostring(buffer(15, 8):uint64())
  elseif kind == 9 then
    tree:add(f.credit, buffer(15, 4))
    tree:add(f.credit_sent, buffer(19, 4))
    tree:add(f.largest, buffer(23, 8))
    tree:add(f.bitmap, buffer(31, 16))
    return about .. " credit " .. buffer(15, 4):uint()
  elseif kind == 12 then
    tree:add(f.queue, buffer(15, 3))
    tree:add(f.body, buffer(18, 5))
    return about .. " queue " .. buffer(15, 3):uint() .. " B"
  elseif kind >= 8 then
    return about
  end
  tree:add(f.op, buffer(15, 8))
  about = about .. " op " .. tostring(buffer(15, 8):uint64())
  if kind == 7 then
    tree:add(f.reason, buffer(23, 1))
    return about
  end
  tree:add(f.offset, buffer(23, 8))
  tree:add(f.op_length, buffer(31, 8))
  tree:add(f.length, buffer(39, 2))
  if kind == 1 or kind == 3 then
    tree:add(f.region, buffer(41, 8))
    tree:add(f.address, buffer(49, 8))
  end
  if credited then
    local echo = body_end(buffer, kind)
    tree:add(f.credit, buffer(echo, 4))
    tree:add(f.credit_sent, buffer(echo + 4, 4))
  end
  return about .. " [" .. tostring(buffer(23, 8):uint64()) .. " +" .. buffer(39, 2):uint() .. " of "
    .. tostring(buffer(31, 8):uint64()) .. "]"
end

-- Where the guard of a control packet begins. A probe is zeros behind its header, which are to be seen if
-- it is not sealed.
local function control_end(buffer, command)
  if command <= 3 then return 4 end
  if command == 5 then return 6 end
  for at = 4, buffer:len() - INSECURE_GUARD - 1 do
    if buffer(at, 1):uint() ~= 0 then return buffer:len() - SEALED_GUARD end
  end
  return buffer:len() - INSECURE_GUARD
end

local function control(buffer, tree)
  local command = buffer(3, 1):uint()
  tree:add(f.command, buffer(3, 1))
  if buffer:len() == buffer:reported_len() then
    local from = control_end(buffer, command)
    if from < 4 then
      tree:add_proto_expert_info(malformed)
      return " " .. commands[command]
    end
    if buffer:len() - from == SEALED_GUARD and from > 4 then
      tree:add(f.encrypted, buffer(4, from - 4))
    elseif command == 5 then
      tree:add(f.probed, buffer(4, 2))
    end
    guard(buffer, tree, from)
  end
  return " " .. commands[command]
end

local function handshake(buffer, tree, kind)
  tree:add(f.mode, buffer(3, 1))
  if kind == 0x45 then
    tree:add(f.session, buffer(4, 4))
    tree:add(f.number, buffer(8, 4))
    return ""
  end
  if buffer:len() < 32 then
    tree:add_proto_expert_info(malformed)
    return ""
  end
  tree:add(f.key, buffer(4, 8))
  tree:add(f.session, buffer(12, 4))
  local from, to = 16, buffer:len() - 16
  if (kind == 0x41 or kind == 0x42) and to - from >= 16 then
    tree:add(f.cookie, buffer(from, 16))
    from = from + 16
  end
  if (kind == 0x42 or kind == 0x43) and to > from then
    tree:add(f.noise, buffer(from, to - from))
  elseif kind == 0x44 and to > from then
    tree:add(f.refusal, buffer(from, 1))
  end
  tree:add(f.proof, buffer(to, 16))
  return " key " .. tostring(buffer(4, 8):uint64():tohex())
end

function apus.dissector(buffer, pinfo, root)
  if not is_apus(buffer) then return 0 end
  pinfo.cols.protocol = "Apus"
  local tree = root:add(apus, buffer())
  local kind, credited = kind_of(buffer)
  tree:add(f.extension, buffer(0, 1))
  tree:add(f.version, buffer(1, 1))
  tree:add(f.kind, buffer(2, 1), kind)
  tree:add(f.credited, buffer(2, 1), credited)
  local about
  if kind == 0x46 then
    about = control(buffer, tree)
  elseif kind >= 0x40 then
    about = handshake(buffer, tree, kind)
  else
    about = transport(buffer, tree, kind, credited)
    local from, length = header_bytes(buffer, kind, credited), payload_bytes(buffer, kind)
    if buffer:len() == buffer:reported_len() then
      if length > 0 then
        local sealed = buffer:len() - from - length == SEALED_GUARD
        tree:add(sealed and f.encrypted or f.payload, buffer(from, length))
      end
      guard(buffer, tree, from + length)
    end
  end
  local info = kinds[kind] .. about
  pinfo.cols.info = info
  tree:append_text(", " .. info)
  return buffer:len()
end

apus:register_heuristic("udp", function(buffer, pinfo, root)
  return is_apus(buffer) and apus.dissector(buffer, pinfo, root) > 0
end)
DissectorTable.get("udp.port"):add_for_decode_as(apus)
