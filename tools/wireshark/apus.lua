-- Wireshark dissector of the Apus wire format (crates/wire/src/lib.rs and crates/udp/src/session).
-- Use: wireshark -X lua_script:tools/wireshark/apus.lua capture.pcapng
-- Or copy it to the personal plugin folder (Help > About Wireshark > Folders).
-- Packets are recognised by their structure on any UDP port that Wireshark assigns to no other protocol (7000 to 7009
-- are AFS, for example); "Decode As..." selects a port manually.

local apus = Proto("apus", "Apus transport")

local kinds = {
  [1] = "Write", [2] = "Message", [3] = "ReadRequest", [4] = "ReadResponse", [5] = "Ack",
  [6] = "Cancel", [7] = "Reject", [8] = "CreditRequest", [9] = "Credit", [10] = "CreditStop",
  [11] = "Notification", [12] = "Signal", [13] = "CompareAndSwap", [14] = "FetchAdd",
  [24] = "Grant", [26] = "Probe", [27] = "ProbeAnswer",
  [0x40] = "Hello", [0x41] = "Cookie", [0x42] = "Init", [0x43] = "Response", [0x44] = "Refused",
  [0x45] = "Unknown", [0x46] = "Control",
}
local reasons = {
  [1] = "no such region", [2] = "not allowed", [3] = "out of bounds", [4] = "too long",
  [5] = "region withdrawn under way",
}
local commands = {
  [1] = "ping", [2] = "pong", [3] = "close", [4] = "probe", [5] = "answer to a probe",
  [6] = "draining", [7] = "idle", [8] = "join", [9] = "challenge", [10] = "prove", [11] = "joined",
}
local refusals = {
  [1] = "no room", [2] = "refused by the application", [3] = "cipher not accepted",
  [4] = "draining", [5] = "with a sealed reason",
}
local extensions = {
  [1] = "Bolt", [129] = "Bolt, echo", [2] = "RCP", [130] = "RCP, echo", [126] = "Telemetry",
  [254] = "Telemetry, echo",
}
local rates = {
  [1] = "1 Gb/s", [2] = "10 Gb/s", [3] = "25 Gb/s", [4] = "40 Gb/s", [5] = "50 Gb/s",
  [6] = "100 Gb/s", [7] = "200 Gb/s", [8] = "400 Gb/s", [9] = "800 Gb/s", [10] = "1600 Gb/s",
}
local modes = {
  [0] = "insecure", [1] = "sealed (AES-256-GCM)", [2] = "sealed (AEGIS-128X)",
  [17] = "identified, sealed (AES-256-GCM)", [18] = "identified, sealed (AEGIS-128X)",
}

local f = {
  writable = ProtoField.uint8("apus.writable", "Bytes that switches may write"),
  extension = ProtoField.uint8("apus.extension", "Congestion extension", base.DEC, extensions),
  inc = ProtoField.uint8("apus.bolt.inc", "INC", base.DEC, nil, 0x04),
  dec = ProtoField.uint8("apus.bolt.dec", "DEC", base.DEC, nil, 0x08),
  first = ProtoField.uint8("apus.bolt.first", "FIRST", base.DEC, nil, 0x01),
  last = ProtoField.uint8("apus.bolt.last", "LAST", base.DEC, nil, 0x02),
  favoured = ProtoField.uint8("apus.bolt.favoured", "Of high priority", base.DEC, nil, 0x10),
  bolt_sent = ProtoField.uint32("apus.bolt.sent_ns", "Packet left at (ns, modulo 2^32)"),
  granted = ProtoField.uint32("apus.bolt.granted", "Packets that came with INC"),
  passed = ProtoField.uint8("apus.int.passed", "Ports passed"),
  path = ProtoField.uint16("apus.int.path", "Path", base.HEX),
  hop_rate = ProtoField.uint8("apus.int.rate", "Hop: link rate", base.DEC, rates),
  hop_at = ProtoField.uint32("apus.int.at_ns", "Hop: packet left at (ns, modulo 2^32)"),
  hop_sent = ProtoField.uint64("apus.int.sent", "Hop: bytes sent (modulo 2^40)"),
  hop_queue = ProtoField.uint24("apus.int.queue", "Hop: queue (bytes)"),
  rcp_rate = ProtoField.uint24("apus.rcp.rate", "Rate (100 kb/s)"),
  rcp_rtt = ProtoField.uint16("apus.rcp.rtt", "RTT (250 ns)"),
  own_writable = ProtoField.bytes("apus.own.writable", "Fields that switches may write"),
  own_authenticated = ProtoField.bytes("apus.own.authenticated", "Fields that are authenticated"),
  link_rate = ProtoField.uint8("apus.signal.rate", "Link rate", base.DEC, rates),
  version = ProtoField.uint8("apus.version", "Version"),
  kind = ProtoField.uint8("apus.kind", "Kind", base.HEX, kinds),
  flow = ProtoField.uint32("apus.flow", "Flow"),
  seq = ProtoField.uint64("apus.seq", "Packet number"),
  whole = ProtoField.bool("apus.whole", "Carries its op whole"),
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
  missing = ProtoField.uint16("apus.ack.missing", "Numbers from the first missing"),
  awaited_behind = ProtoField.uint16("apus.order.awaited_behind", "Number - least awaited"),
  ack_now = ProtoField.bool("apus.order.ack_now", "Waits for an acknowledgement"),
  probe_number = ProtoField.uint32("apus.probe.number", "Probe"),
  wanted = ProtoField.uint32("apus.credit.packets", "Packets to send"),
  credit_sent = ProtoField.uint32("apus.credit.sent_ns", "Credit left at (ns, modulo 2^32)"),
  queue = ProtoField.uint24("apus.signal.queue", "Queue (bytes)"),
  expected = ProtoField.uint64("apus.atomic.expected", "Expected word", base.HEX),
  new = ProtoField.uint64("apus.atomic.new", "New word", base.HEX),
  delta = ProtoField.uint64("apus.atomic.delta", "Added to the word"),
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
  port_number = ProtoField.uint8("apus.port.number", "Number of the port"),
}
apus.fields = f

local malformed = ProtoExpert.new("apus.malformed", "Malformed Apus packet",
  expert.group.MALFORMED, expert.severity.ERROR)
apus.experts = { malformed }

local SEALED_GUARD, INSECURE_GUARD = 24, 12

-- Values added to the kind of a data packet: CREDITED if it was sent for a credit, SPREAD if other packets may overtake
-- it (or its acknowledgement), EXTENDED if it has a congestion extension, and WHOLE if it carries its whole op in the
-- short form.
local CREDITED, SPREAD, EXTENDED, WHOLE = 0x80, 0xc0, 0x20, 0x10
-- Kinds of a path probe and its answer.
local PROBE, PROBE_ANSWER = 26, 27
-- Bytes of one hop's telemetry.
local HOP = 13

-- Returns the kind without these values, the field attached after the body ("credit", "order" or nil), and whether
-- EXTENDED and WHOLE were added.
local function kind_of(buffer)
  local kind = buffer(2, 1):uint()
  if kind >= 0x40 and kind <= 0x46 then return kind, nil, false, false end
  if kind == PROBE or kind == PROBE_ANSWER then return kind, nil, false, false end
  local attached = nil
  if kind >= SPREAD then
    kind, attached = kind - SPREAD, "order"
  elseif kind >= CREDITED then
    kind, attached = kind - CREDITED, "credit"
  end
  local extended = kind >= EXTENDED
  if extended then kind = kind - EXTENDED end
  local whole = kind >= WHOLE
  if whole then kind = kind - WHOLE end
  return kind, attached, extended, whole
end

-- Identifiers of telemetry on data and on acknowledgements; an algorithm's own fields have 1 to 125 and 129 to 253.
local TELEMETRY, TELEMETRY_ECHO, ECHO = 126, 254, 128
-- Maximum number of authenticated bytes in an algorithm's own fields.
local MAX_OWN = 16

-- Returns the bytes of an extension in the authenticated part, including its type; nil if it is not valid.
local function extension_bytes(buffer)
  if buffer:len() < 16 then return nil end
  local kind = buffer(15, 1):uint()
  if kind == TELEMETRY then return 1 end
  if kind % ECHO == 0 or kind % ECHO > TELEMETRY or buffer:len() < 17 then return nil end
  local count = buffer(16, 1):uint()
  if kind == TELEMETRY_ECHO then return 5 + HOP * count end
  if count > MAX_OWN then return nil end
  return 2 + count
end

-- Returns the packet from the last of the bytes that switches may write, so that offsets are those of a packet without
-- such bytes.
local function authenticated(datagram)
  local writable = datagram(0, 1):uint()
  if writable + 16 > datagram:len() then return nil end
  return datagram(writable):tvb()
end

-- Returns an accessor by (offset, length) that skips the extension's bytes in the authenticated part.
local function reader(buffer, extension)
  return function(from, length)
    if from >= 15 then from = from + extension end
    return buffer(from, length)
  end
end

-- Returns the bytes of a header without extension and credit echo, by kind and form; nil if it is not valid.
local function body_end(at, kind, whole, there)
  if whole then
    if kind == 1 or kind == 13 or kind == 14 then return 39 end
    if kind == 2 or kind == 4 then return 23 end
    return nil
  end
  if kind == 1 or kind == 3 or kind == 5 or kind == 13 or kind == 14 then return 57 end
  if kind == 2 or kind == 4 or kind == 6 then return 41 end
  if kind == 7 then return 24 end
  if kind == 8 or kind == PROBE or kind == PROBE_ANSWER then return 19 end
  if kind == 10 or kind == 11 then return 15 end
  if kind == 9 and there >= 48 then return 48 + at(47, 1):uint() end
  if kind == 12 then return 23 end
  return nil
end

local function payload_bytes(at, kind, whole)
  if kind == 5 or (kind >= 7 and kind <= 12) or kind == PROBE or kind == PROBE_ANSWER then return 0 end
  if whole then return at(21, 2):uint() end
  return at(39, 2):uint()
end

-- Returns the bytes of a header with its extension, and the bytes of the extension; nil if it is not valid.
local function header_bytes(buffer, kind, attached, extended, whole)
  local extension = 0
  if extended then
    extension = extension_bytes(buffer)
    if extension == nil or buffer:len() < 15 + extension then return nil end
  end
  local body = body_end(reader(buffer, extension), kind, whole, buffer:len() - extension)
  if body == nil then return nil end
  local more = 0
  if attached == "credit" then more = 8 end
  if attached == "order" then more = kind == 5 and 2 or 3 end
  return body + extension + more, extension
end

-- Returns whether the bytes have the structure of an Apus packet.
local function is_apus(datagram)
  if datagram:len() < 16 then return false end
  local buffer = authenticated(datagram)
  if buffer == nil or buffer(1, 1):uint() ~= 1 then return false end
  local kind, attached, extended, whole = kind_of(buffer)
  if datagram(0, 1):uint() > 0 and not extended then return false end
  if kind >= 0x40 and kind <= 0x45 then return modes[buffer(3, 1):uint()] ~= nil end
  if kind == 0x46 then return commands[buffer(3, 1):uint()] ~= nil end
  local header, extension = header_bytes(buffer, kind, attached, extended, whole)
  if header == nil or buffer:len() < header then return false end
  local payload = payload_bytes(reader(buffer, extension), kind, whole)
  -- This sub-buffer does not know the original length of a packet that the capture truncated.
  local reported = datagram:reported_len() - datagram(0, 1):uint()
  local guard = reported - header - payload
  return guard == SEALED_GUARD or guard == INSECURE_GUARD or (kind == 12 and guard == 4)
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

-- Adds the telemetry of the hops that start at offset `from`.
local function hops(buffer, tree, from, count)
  for hop = 0, count - 1 do
    local at = from + hop * HOP
    tree:add(f.hop_rate, buffer(at, 1))
    tree:add(f.hop_at, buffer(at + 1, 4))
    tree:add(f.hop_sent, buffer(at + 5, 5))
    tree:add(f.hop_queue, buffer(at + 10, 3))
  end
end

-- Adds the extension: its writable bytes are at the start of the datagram, the other bytes after the packet number.
local function extension_fields(datagram, buffer, tree)
  local writable, kind = datagram(0, 1):uint(), buffer(15, 1):uint()
  tree:add(f.extension, buffer(15, 1))
  if kind == TELEMETRY and writable >= 3 then
    tree:add(f.passed, datagram(1, 1))
    tree:add(f.path, datagram(2, 2))
    hops(datagram, tree, 4, math.min(datagram(1, 1):uint(), math.floor((writable - 3) / HOP)))
    return
  elseif kind == TELEMETRY_ECHO then
    tree:add(f.passed, buffer(17, 1))
    tree:add(f.path, buffer(18, 2))
    hops(buffer, tree, 20, math.min(buffer(16, 1):uint(), buffer(17, 1):uint()))
    return
  elseif kind == TELEMETRY or (kind > ECHO and writable > 0) then
    tree:add_proto_expert_info(malformed)
    return
  end
  local count = buffer(16, 1):uint()
  if kind == 1 and writable == 1 and count == 5 then
    tree:add(f.inc, datagram(1, 1))
    tree:add(f.dec, datagram(1, 1))
    tree:add(f.first, buffer(17, 1))
    tree:add(f.last, buffer(17, 1))
    tree:add(f.favoured, buffer(17, 1))
    tree:add(f.bolt_sent, buffer(18, 4))
  elseif kind == ECHO + 1 and count == 4 then
    tree:add(f.granted, buffer(17, 4))
  elseif kind == 2 and writable == 3 and count == 2 then
    tree:add(f.rcp_rate, datagram(1, 3))
    tree:add(f.rcp_rtt, buffer(17, 2))
  elseif kind == ECHO + 2 and count == 3 then
    tree:add(f.rcp_rate, buffer(17, 3))
  else
    -- Fields of an algorithm outside the project.
    if writable > 0 then tree:add(f.own_writable, datagram(1, writable)) end
    if count > 0 then tree:add(f.own_authenticated, buffer(17, count)) end
  end
end

-- Returns the op of a packet in the short form. Bytes 15 to 20 give the difference between the packet number and the
-- op's number.
local function op_below(at)
  local number = at(7, 8):uint64()
  local distance = at(15, 2):int() * 4294967296 + at(17, 4):uint()
  if distance < 0 then return number + UInt64(-distance) end
  return number - UInt64(distance)
end

-- Adds op, range and target of a data packet. The short form does not contain offset and length of the op.
local function segment(at, tree, kind, whole)
  local op, offset, length, of, region
  if whole then
    op, offset, length, region = op_below(at), UInt64(0), at(21, 2), 23
    of = UInt64(length:uint())
    tree:add(f.op, at(15, 6), op)
    tree:add(f.offset, offset):set_generated()
    tree:add(f.op_length, of):set_generated()
  else
    op, offset, length, region = at(15, 8):uint64(), at(23, 8):uint64(), at(39, 2), 41
    of = at(31, 8):uint64()
    tree:add(f.op, at(15, 8))
    tree:add(f.offset, at(23, 8))
    tree:add(f.op_length, at(31, 8))
  end
  tree:add(f.length, length)
  if kind == 1 or kind == 3 or kind == 13 or kind == 14 then
    tree:add(f.region, at(region, 8))
    tree:add(f.address, at(region + 8, 8))
  end
  return " op " .. tostring(op) .. " [" .. tostring(offset) .. " +" .. length:uint() .. " of "
    .. tostring(of) .. "]"
end

local function transport(at, tree, kind, attached, whole)
  tree:add(f.flow, at(3, 4))
  tree:add(f.seq, at(7, 8))
  local about = " flow " .. at(3, 4):uint() .. " #" .. tostring(at(7, 8):uint64())
  if kind == 5 then
    tree:add(f.largest, at(15, 8))
    tree:add(f.bitmap, at(23, 16))
    tree:add(f.echo, at(39, 8))
    tree:add(f.remote_queuing, at(47, 4))
    tree:add(f.hops, at(51, 1))
    tree:add(f.marked, at(52, 4))
    tree:add(f.receiver_level, at(56, 1))
    if attached == "order" then tree:add(f.missing, at(57, 2)) end
    return about .. " acks " .. tostring(at(15, 8):uint64())
  elseif kind == 8 then
    tree:add(f.wanted, at(15, 4))
    return about .. " for " .. at(15, 4):uint() .. " packets"
  elseif kind == 9 then
    tree:add(f.credit, at(15, 4))
    tree:add(f.credit_sent, at(19, 4))
    tree:add(f.largest, at(23, 8))
    tree:add(f.bitmap, at(31, 16))
    return about .. " credit " .. at(15, 4):uint()
  elseif kind == 12 then
    tree:add(f.queue, at(15, 3))
    tree:add(f.link_rate, at(18, 1))
    tree:add(f.bolt_sent, at(19, 4))
    return about .. " queue " .. at(15, 3):uint() .. " B"
  elseif kind == 7 then
    tree:add(f.op, at(15, 8))
    tree:add(f.reason, at(23, 1))
    return about .. " op " .. tostring(at(15, 8):uint64())
  elseif kind == PROBE or kind == PROBE_ANSWER then
    tree:add(f.probe_number, at(15, 4))
    return about .. " probe " .. at(15, 4):uint()
  elseif kind >= 8 and kind <= 11 then
    return about
  end
  about = about .. segment(at, tree, kind, whole)
  local behind = body_end(at, kind, whole, 0)
  if attached == "credit" then
    tree:add(f.credit, at(behind, 4))
    tree:add(f.credit_sent, at(behind + 4, 4))
  elseif attached == "order" then
    tree:add(f.awaited_behind, at(behind, 2))
    tree:add(f.ack_now, at(behind + 2, 1))
  end
  return about
end

-- Bytes after the header of control packets with a fixed length.
local control_bytes = {
  [1] = 0, [2] = 0, [3] = 0, [5] = 2, [6] = 0, [7] = 0, [9] = 9, [10] = 9, [11] = 3,
}
-- Commands that contain the number of a port.
local of_ports = { [8] = true, [9] = true, [10] = true, [11] = true }

-- Returns the offset of a control packet's guard. A probe has zeros after its header and a join has zeros after its
-- port number; they are visible unless the packet is sealed.
local function control_end(buffer, command)
  if control_bytes[command] then return 4 + control_bytes[command] end
  for at = command == 8 and 5 or 4, buffer:len() - INSECURE_GUARD - 1 do
    if buffer(at, 1):uint() ~= 0 then return buffer:len() - SEALED_GUARD end
  end
  return buffer:len() - INSECURE_GUARD
end

local function control(buffer, tree, complete)
  local command = buffer(3, 1):uint()
  tree:add(f.command, buffer(3, 1))
  if complete then
    local from = control_end(buffer, command)
    if from < 4 then
      tree:add_proto_expert_info(malformed)
      return " " .. commands[command]
    end
    if buffer:len() - from == SEALED_GUARD and from > 4 then
      tree:add(f.encrypted, buffer(4, from - 4))
    elseif command == 5 then
      tree:add(f.probed, buffer(4, 2))
    elseif of_ports[command] and from > 4 then
      tree:add(f.port_number, buffer(4, 1))
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
    if to > from + 1 then tree:add(f.noise, buffer(from + 1, to - from - 1)) end
  end
  tree:add(f.proof, buffer(to, 16))
  return " key " .. tostring(buffer(4, 8):uint64():tohex())
end

function apus.dissector(datagram, pinfo, root)
  if not is_apus(datagram) then return 0 end
  pinfo.cols.protocol = "Apus"
  local tree = root:add(apus, datagram())
  local buffer = authenticated(datagram)
  local kind, attached, extended, whole = kind_of(buffer)
  tree:add(f.writable, datagram(0, 1))
  tree:add(f.version, buffer(1, 1))
  tree:add(f.kind, buffer(2, 1), kind)
  tree:add(f.credited, buffer(2, 1), attached == "credit")
  tree:add(f.whole, buffer(2, 1), whole)
  local complete = datagram:len() == datagram:reported_len()
  local about
  if kind == 0x46 then
    about = control(buffer, tree, complete)
  elseif kind >= 0x40 then
    about = handshake(buffer, tree, kind)
  else
    local from, extension = header_bytes(buffer, kind, attached, extended, whole)
    local at = reader(buffer, extension)
    if extended then extension_fields(datagram, buffer, tree) end
    about = transport(at, tree, kind, attached, whole)
    local length = payload_bytes(at, kind, whole)
    if complete then
      if length > 0 then
        local sealed = buffer:len() - from - length == SEALED_GUARD
        tree:add(sealed and f.encrypted or f.payload, buffer(from, length))
        if not sealed and kind == 13 and length == 16 then
          tree:add_le(f.expected, buffer(from, 8))
          tree:add_le(f.new, buffer(from + 8, 8))
        elseif not sealed and kind == 14 and length == 8 then
          tree:add_le(f.delta, buffer(from, 8))
        end
      end
      if kind == 12 then
        tree:add(f.checksum, buffer(from, 4))
      else
        guard(buffer, tree, from + length)
      end
    end
  end
  local info = kinds[kind] .. about
  pinfo.cols.info = info
  tree:append_text(", " .. info)
  return datagram:len()
end

apus:register_heuristic("udp", function(buffer, pinfo, root)
  return is_apus(buffer) and apus.dissector(buffer, pinfo, root) > 0
end)
DissectorTable.get("udp.port"):add_for_decode_as(apus)
