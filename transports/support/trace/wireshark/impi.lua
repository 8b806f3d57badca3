-- IMPI for Wireshark 3.6 and later: the captures of impi's traces (pcapng, link type
-- USER0), and IMPI on TCP: the startup protocol between clients and server, the channels
-- between hosts, and the direct links between procs of impi.
--
-- docs/tracing.md says how to install and use it; docs/wire.md has the layouts.

local impi = Proto("impi", "Interoperable MPI")
local record = Proto("impi_trace", "IMPI trace record")

local PUBLISHED, DRAFT = 0, 1

impi.prefs.dialect = Pref.enum("Dialect on TCP", PUBLISHED,
  "Layout of packet headers and of P_PID in TCP connections; traces say theirs themselves", {
    { 1, "IMPI 0.0 as published", PUBLISHED },
    { 2, "Draft of March 1999", DRAFT },
  }, true)
impi.prefs.heuristic = Pref.bool("Look for IMPI in TCP connections", true,
  "Without it, use Decode As")

-- Packets -------------------------------------------------------------------------------

local types = {
  [0] = "DATA", "DATASYNC", "PROTOACK", "SYNCACK", "CANCEL", "CANCELYES", "CANCELNO", "FINI",
}
local FINI, HEADER = 7, 128

local f = {
  type     = ProtoField.uint32("impi.type", "Type (pk_type)", base.DEC, types),
  len      = ProtoField.uint32("impi.len", "Data in this packet (pk_len)", base.DEC),
  src_host = ProtoField.ipv6("impi.src.host", "Source host (pk_src)"),
  src_ip   = ProtoField.ipv4("impi.src.ip", "Source host, as IPv4"),
  src_pid  = ProtoField.int64("impi.src.pid", "Source pid (pk_src)", base.DEC),
  dst_host = ProtoField.ipv6("impi.dst.host", "Destination host (pk_dest)"),
  dst_ip   = ProtoField.ipv4("impi.dst.ip", "Destination host, as IPv4"),
  dst_pid  = ProtoField.int64("impi.dst.pid", "Destination pid (pk_dest)", base.DEC),
  srqid    = ProtoField.uint64("impi.srqid", "Source request (pk_srqid)", base.DEC),
  drqid    = ProtoField.uint64("impi.drqid", "Destination request (pk_drqid)", base.DEC),
  msglen   = ProtoField.uint64("impi.msglen", "Data in the message (pk_msglen)", base.DEC),
  lsrank   = ProtoField.int32("impi.lsrank", "Source rank in the communicator (pk_lsrank)", base.DEC),
  tag      = ProtoField.int32("impi.tag", "Tag (pk_tag)", base.DEC),
  tag64    = ProtoField.int64("impi.tag64", "Tag of 8 bytes (pk_tag)", base.DEC),
  cid      = ProtoField.uint64("impi.cid", "Context ID (pk_cid)", base.DEC),
  seqnum   = ProtoField.uint64("impi.seqnum", "Sequence number, informational (pk_seqnum)", base.DEC),
  count    = ProtoField.int64("impi.count", "Count, informational (pk_count)", base.DEC),
  dtype    = ProtoField.uint64("impi.dtype", "Datatype, informational (pk_dtype)", base.HEX),
  reserved = ProtoField.uint64("impi.reserved", "Reserved (pk_reserved)", base.HEX),
  data     = ProtoField.bytes("impi.data", "Data"),
  connect  = ProtoField.uint32("impi.step", "Step of connecting", base.DEC, {
    [0] = "introduction", [7] = "sizes", "sizes, to all members", "worlds", "worlds, to all members", "groups", "groups, to all members",
    [14] = "both have it", "all members have it",
  }),

  host_rank = ProtoField.uint32("impi.greeting.host", "Host rank", base.DEC),

  -- startup
  command   = ProtoField.string("impi.command", "Command"),
  cmd_len   = ProtoField.int32("impi.command.len", "Length", base.DEC),
  mask      = ProtoField.uint32("impi.auth.mask", "Mechanisms offered", base.HEX),
  mask_none = ProtoField.bool("impi.auth.mask.none", "NONE", 32, nil, 1),
  mask_key  = ProtoField.bool("impi.auth.mask.key", "KEY", 32, nil, 2),
  mechanism = ProtoField.int32("impi.auth.mechanism", "Mechanism chosen", base.DEC, { [0] = "NONE", "KEY" }),
  auth_len  = ProtoField.int32("impi.auth.len", "Length", base.DEC),
  key       = ProtoField.uint64("impi.auth.key", "Key", base.HEX),
  client    = ProtoField.int32("impi.client", "Client rank", base.DEC),
  clients   = ProtoField.int32("impi.clients", "Number of clients", base.DEC),
  label     = ProtoField.uint32("impi.label", "Label", base.HEX),
  clientset = ProtoField.uint32("impi.label.clients", "Clients that sent it", base.HEX),
  value     = ProtoField.int64("impi.label.value", "Value", base.DEC),
  address   = ProtoField.ipv6("impi.label.address", "Address"),
  version   = ProtoField.string("impi.label.version", "Version"),
  token     = ProtoField.bytes("impi.label.token", "Job token"),
  card      = ProtoField.string("impi.label.card", "Business card"),
  reason    = ProtoField.string("impi.fail", "Reason"),
  payload   = ProtoField.bytes("impi.payload", "Payload"),

  -- direct links
  step      = ProtoField.uint32("impi.direct.kind", "Greeting", base.DEC,
    { "HELLO", "CHALLENGE", "PROOF", "VERDICT" }),
  job       = ProtoField.bytes("impi.direct.job", "Job ID"),
  nonce     = ProtoField.bytes("impi.direct.nonce", "Nonce"),
  from      = ProtoField.uint32("impi.direct.from", "Source world rank", base.DEC),
  to        = ProtoField.uint32("impi.direct.to", "Destination world rank", base.DEC),
  mac       = ProtoField.bytes("impi.direct.mac", "MAC"),
  verdict   = ProtoField.uint32("impi.direct.verdict", "Verdict", base.DEC, {
    [0] = "accepted", "unknown rank", "both dialled; the other link is used", "another job", "wrong token",
    "malformed greeting", "the job is ending", "not allowed by the acceptor's routes",
  }),
}

local r = {
  version  = ProtoField.uint8("impi_trace.version", "Version", base.DEC),
  kind     = ProtoField.uint8("impi_trace.kind", "Kind", base.DEC, { [0] = "packet", "greeting", "notice", "step" }),
  dialect  = ProtoField.uint8("impi_trace.dialect", "Dialect", base.DEC, { [0] = "published", "draft" }),
  from     = ProtoField.int32("impi_trace.src", "Source rank (-1: none, or not known)", base.DEC),
  to       = ProtoField.int32("impi_trace.dst", "Destination rank (-1: none, or not known)", base.DEC),
  offset   = ProtoField.uint64("impi_trace.offset", "Offset in this direction of the link", base.DEC),
  notice   = ProtoField.string("impi_trace.notice", "Notice"),
  greeting = ProtoField.bytes("impi_trace.greeting", "Greeting"),
  procedure = ProtoField.string("impi_trace.procedure", "Procedure"),
  step     = ProtoField.int32("impi_trace.step", "Step (-1: begin or end)", base.DEC),
  text     = ProtoField.string("impi_trace.text", "What has come of it"),
}

local function values(t)
  local list = {}
  for _, v in pairs(t) do list[#list + 1] = v end
  return list
end
impi.fields, record.fields = values(f), values(r)

local e = {
  type     = ProtoExpert.new("impi.type.unknown", "IMPI 0.0 has no packet of this type",
    expert.group.MALFORMED, expert.severity.ERROR),
  msglen   = ProtoExpert.new("impi.len.message", "The packet has more data than its message",
    expert.group.MALFORMED, expert.severity.ERROR),
  tag      = ProtoExpert.new("impi.tag.range", "The tag does not fit into 32 bits",
    expert.group.PROTOCOL, expert.severity.ERROR),
  negative = ProtoExpert.new("impi.tag.negative", "Messages of users have tags from 0",
    expert.group.PROTOCOL, expert.severity.NOTE),
  nobody   = ProtoExpert.new("impi.nobody", "The packet names no sender or no receiver",
    expert.group.PROTOCOL, expert.severity.WARN),
  reserved = ProtoExpert.new("impi.reserved.set", "Reserved bits are set",
    expert.group.PROTOCOL, expert.severity.NOTE),
  unused   = ProtoExpert.new("impi.unused", "No data follow a packet of this type, whatever pk_len says",
    expert.group.COMMENTS_GROUP, expert.severity.CHAT),
  empty    = ProtoExpert.new("impi.empty", "An empty packet of a message that is not empty",
    expert.group.PROTOCOL, expert.severity.NOTE),
  cut      = ProtoExpert.new("impi.cut", "The capture does not have all of the packet's data",
    expert.group.COMMENTS_GROUP, expert.severity.CHAT),
  cancel   = ProtoExpert.new("impi.cancelled", "A message is cancelled",
    expert.group.SEQUENCE, expert.severity.NOTE),
  fail     = ProtoExpert.new("impi.failed", "The job has failed",
    expert.group.RESPONSE_CODE, expert.severity.WARN),
  refused  = ProtoExpert.new("impi.refused", "The link is refused",
    expert.group.RESPONSE_CODE, expert.severity.WARN),
  command  = ProtoExpert.new("impi.command.unknown", "IMPI 0.0 has no such command",
    expert.group.PROTOCOL, expert.severity.NOTE),
  length   = ProtoExpert.new("impi.command.length", "The length does not fit the command",
    expert.group.MALFORMED, expert.severity.WARN),
  foreign  = ProtoExpert.new("impi.foreign", "Not IMPI from here on",
    expert.group.MALFORMED, expert.severity.ERROR),
}
impi.experts = values(e)
local lost = ProtoExpert.new("impi_trace.lost", "The link did not end as it should",
  expert.group.SEQUENCE, expert.severity.WARN)
record.experts = { lost }

local zero = UInt64.new(0)

-- ipv4 tells whether a host ID is one of the two embeddings of an IPv4 address.
local function ipv4(tvb)
  local middle = tvb(8, 4):uint()
  return tvb(0, 8):uint64() == zero and (middle == 0 or middle == 0xffff)
end

local function is_zero(tvb)
  return tvb(0, 8):uint64() == zero and tvb(8, 8):uint64() == zero
end

-- who names a proc by its address.
local function who(host, pid)
  local address = ipv4(host) and tostring(host(12, 4):ipv4()) or tostring(host:ipv6())
  return address .. "/" .. tostring(pid:int64())
end

local function add_host(tree, v6, v4, host)
  local item = tree:add(v6, host)
  if ipv4(host) and not is_zero(host) then
    item:add(v4, host(12, 4)):set_generated()
  end
end

-- Two jobs that connect: the roots' messages have the step as their tag, in a context of
-- their own; those in a side have it in the tag's last five bits, and a rank that no
-- communicator has.
local MEETING, BY_STEP, BY_STEP_END = UInt64.new(0xfffffff0, 0xffffffff), 0x30000000, 0x38000000

-- step_of gives the step of connecting that a message belongs to, if any.
local function step_of(lsrank, tag, cid)
  if cid == MEETING then return tag end
  if lsrank >= BY_STEP and lsrank < BY_STEP_END and tag >= 0 then return tag % 32 end
end

-- packet shows a packet that fills tvb from off on, as far as it was captured, and gives
-- the text for the info column. names has the ends' names, if they are known.
local function packet(tvb, off, tree, dialect, names)
  local have = tvb:len() - off
  local b = tvb(off)
  local typ = b(0, 4):uint()
  local length = typ <= 1 and b(4, 4):uint() or 0
  local t = tree:add(impi, b(0, math.min(have, HEADER + length)))

  local item = t:add(f.type, b(0, 4))
  if not types[typ] then item:add_proto_expert_info(e.type) end
  if typ >= 4 and typ <= 6 then item:add_proto_expert_info(e.cancel) end
  local len_item = t:add(f.len, b(4, 4))
  if typ > 1 and b(4, 4):uint() ~= 0 then len_item:add_proto_expert_info(e.unused) end
  add_host(t, f.src_host, f.src_ip, b(8, 16))
  t:add(f.src_pid, b(24, 8))
  add_host(t, f.dst_host, f.dst_ip, b(32, 16))
  t:add(f.dst_pid, b(48, 8))
  if typ ~= FINI and ((is_zero(b(8, 16)) and b(24, 8):uint64() == zero)
      or (is_zero(b(32, 16)) and b(48, 8):uint64() == zero)) then
    t:add_proto_expert_info(e.nobody)
  end
  t:add(f.srqid, b(56, 8))
  t:add(f.drqid, b(64, 8))
  local msglen = b(72, 8):uint64()
  item = t:add(f.msglen, b(72, 8))
  if typ <= 1 and UInt64.new(length) > msglen then item:add_proto_expert_info(e.msglen) end
  if typ <= 1 and length == 0 and msglen ~= zero then len_item:add_proto_expert_info(e.empty) end

  local tag = b(84, 4):int()
  if dialect == DRAFT then
    item = t:add(f.tag64, b(80, 8))
    if b(80, 4):int() ~= (tag < 0 and -1 or 0) then
      item:add_proto_expert_info(e.tag)
      tag = tostring(b(80, 8):int64())
    else
      t:add(f.tag, b(84, 4)):set_generated()
    end
  else
    t:add(f.lsrank, b(80, 4))
    item = t:add(f.tag, b(84, 4))
  end
  if typ <= 1 and type(tag) == "number" and tag < 0 then item:add_proto_expert_info(e.negative) end
  t:add(f.cid, b(88, 8))
  local step = typ <= 1 and dialect ~= DRAFT and step_of(b(80, 4):int(), tag, b(88, 8):uint64())
  if step then t:add(f.connect, b(84, 4), step):set_generated() end
  t:add(f.seqnum, b(96, 8))
  t:add(f.count, b(104, 8))
  t:add(f.dtype, b(112, 8))
  item = t:add(f.reserved, b(120, 8))
  if b(120, 8):uint64() ~= zero then item:add_proto_expert_info(e.reserved) end
  if length > 0 then
    local n = math.min(length, have - HEADER)
    if n > 0 then t:add(f.data, b(HEADER, n)) end
    if n < length then t:add_proto_expert_info(e.cut, n .. " of " .. length .. " bytes of data are in the capture") end
  end

  local info = types[typ] or ("TYPE(" .. typ .. ")")
  if typ ~= FINI then
    local from = names and names.from or who(b(8, 16), b(24, 8))
    local to = names and names.to or who(b(32, 16), b(48, 8))
    info = info .. " " .. from .. " -> " .. to
  elseif names and names.from and names.to then
    info = info .. " " .. names.from .. " -> " .. names.to
  end
  if typ <= 1 then
    info = info .. " tag " .. tag .. " cid " .. tostring(b(88, 8):uint64()) .. " len " .. length .. "/" .. tostring(msglen)
    if b(64, 8):uint64() ~= zero then info = info .. " drqid " .. tostring(b(64, 8):uint64()) end
    if step then info = info .. " step " .. step .. " of connecting" end
  elseif typ >= 3 and typ <= 6 then
    info = info .. " srqid " .. tostring(b(56, 8):uint64())
    if typ == 3 then info = info .. " drqid " .. tostring(b(64, 8):uint64()) end
  end
  t:append_text(", " .. info)
  return info
end

-- Traces --------------------------------------------------------------------------------

local RECORD, STEP, MAGIC = 24, 5, 0xb6b2afb6

local function rank_name(rank)
  if rank >= 0 then return tostring(rank) end
end

function record.dissector(tvb, pinfo, tree)
  if tvb:len() < RECORD or tvb(0, 4):uint() ~= MAGIC then return 0 end
  local kind, dialect = tvb(5, 1):uint(), tvb(6, 1):uint()
  local from, to = rank_name(tvb(8, 4):int()), rank_name(tvb(12, 4):int())
  local t = tree:add(record, tvb(0, RECORD))
  t:add(r.version, tvb(4, 1))
  t:add(r.kind, tvb(5, 1))
  t:add(r.dialect, tvb(6, 1))
  t:add(r.from, tvb(8, 4))
  t:add(r.to, tvb(12, 4))
  t:add(r.offset, tvb(16, 8))
  pinfo.cols.protocol = "IMPI"
  if from then pinfo.cols.src = "rank " .. from end
  if to then pinfo.cols.dst = "rank " .. to end
  if kind == 0 and tvb:len() >= RECORD + HEADER then
    local b = tvb(RECORD)
    if not from then pinfo.cols.src = who(b(8, 16), b(24, 8)) end
    if not to then pinfo.cols.dst = who(b(32, 16), b(48, 8)) end
    pinfo.cols.info = packet(tvb, RECORD, tree, dialect, { from = from, to = to })
  elseif kind == 1 and tvb:len() > RECORD then
    t:add(r.greeting, tvb(RECORD))
    pinfo.cols.info = "greeting " .. tostring(tvb(RECORD):bytes())
  elseif kind == 2 and tvb:len() > RECORD then
    local text = tvb(RECORD):string()
    local item = t:add(r.notice, tvb(RECORD))
    if text ~= "end of stream" then item:add_proto_expert_info(lost) end
    pinfo.cols.info = text
  elseif kind == 3 and tvb:len() >= RECORD + STEP then
    local number, n = tvb(RECORD, 4):int(), tvb(RECORD + 4, 1):uint()
    local at = RECORD + STEP + n
    if n == 0 or at >= tvb:len() then return tvb:len() end
    local info = tvb(RECORD + STEP, n):string()
    t:add(r.procedure, tvb(RECORD + STEP, n))
    t:add(r.step, tvb(RECORD, 4))
    t:add(r.text, tvb(at))
    if number >= 0 then info = info .. " step " .. number end
    pinfo.cols.info = info .. ": " .. tvb(at):string()
  end
  return tvb:len()
end

local encaps = wtap or wtap_encaps
DissectorTable.get("wtap_encap"):add(encaps.USER0, record)

-- TCP: startup --------------------------------------------------------------------------

local labels = {
  [0x1000] = "C_VERSION", [0x1100] = "C_NHOSTS", [0x1200] = "C_NPROCS", [0x1300] = "C_DATALEN",
  [0x1400] = "C_TAGUB", [0x1500] = "C_COLL_XSIZE", [0x1600] = "C_COLL_MAXLINEAR",
  [0x2000] = "H_IPV6", [0x2100] = "H_PORT", [0x2200] = "H_NPROCS", [0x2300] = "H_ACKMARK", [0x2400] = "H_HIWATER",
  [0x3000] = "P_IPV6", [0x3100] = "P_PID", [0x49000000] = "X_CARDS",
}
local C_VERSION, H_IPV6, H_PORT, P_IPV6, P_PID, X_CARDS = 0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x49000000

local commands = { AUTH = true, IMPI = true, COLL = true, DONE = true, FINI = true, INIF = true, FAIL = true }
local MAX_COMMAND = 64 * 1024 * 1024

-- ports are those of hosts, as the server has told them.
local ports = {}

local function add_values(t, label, b, learn)
  local n, at = b:len(), 0
  if label == X_CARDS then
    while at + 4 <= n do
      local len = b(at, 4):uint()
      if len > n - at - 4 then break end
      if len == 32 then
        t:add(f.token, b(at + 4, len))
      elseif len > 0 then
        t:add(f.card, b(at + 4, len))
      end
      at = at + 4 + len
    end
    return n - at
  end
  local width = 4
  if label == C_VERSION then width = 8 end
  if label == H_IPV6 or label == P_IPV6 then width = 16 end
  if label == P_PID and impi.prefs.dialect == PUBLISHED then width = 8 end
  while at + width <= n do
    local v = b(at, width)
    if label == C_VERSION then
      t:add(f.version, v, v(0, 4):uint() .. "." .. v(4, 4):uint())
    elseif width == 16 then
      t:add(f.address, v)
    elseif width == 8 then
      t:add(f.value, v)
    else
      t:add(f.value, v, Int64.new(v:int()))
      if learn and label == H_PORT and v:uint() > 0 then ports[v:uint()] = true end
    end
    at = at + width
  end
  return n - at
end

-- command shows a message of startup; to_server is nil if nobody knows.
local function command(b, tree, to_server)
  local name, n = b(0, 4):string(), b:len() - 8
  local t = tree:add(impi, b, "IMPI startup, " .. name)
  local item, info = t:add(f.command, b(0, 4)), name
  if not commands[name] then item:add_proto_expert_info(e.command) end
  local len_item = t:add(f.cmd_len, b(4, 4))
  local function wants(ok)
    if not ok then len_item:add_proto_expert_info(e.length) end
    return ok
  end
  if name == "AUTH" and wants(n == 4) then
    local m = t:add(f.mask, b(8, 4))
    m:add(f.mask_none, b(8, 4))
    m:add(f.mask_key, b(8, 4))
  elseif name == "IMPI" and wants(n == 4) then
    t:add(to_server == false and f.clients or f.client, b(8, 4))
    info = info .. (to_server == false and " clients " or " client ") .. b(8, 4):int()
  elseif name == "COLL" and wants(n >= 4) then
    local label = b(8, 4):uint()
    local label_name = labels[label] or string.format("0x%x", label)
    t:add(f.label, b(8, 4)):append_text(" (" .. label_name .. ")")
    info = info .. " " .. label_name
    local at = 12
    if to_server == false and wants(n >= 8) then
      t:add(f.clientset, b(12, 4))
      at = 16
    end
    if at < b:len() then
      local left = b:len() - at
      if labels[label] and to_server ~= nil then
        left = add_values(t, label, b(at), to_server == false)
        wants(left == 0)
      end
      if left > 0 then t:add(f.payload, b(b:len() - left)) end
    end
  elseif name == "FAIL" and n > 0 then
    t:add(f.reason, b(8)):add_proto_expert_info(e.fail)
    info = info .. ": " .. b(8):string()
  elseif n > 0 then
    t:add(f.payload, b(8))
  end
  return info
end

local function answer(b, tree)
  local t = tree:add(impi, b, "IMPI startup, answer to AUTH")
  t:add(f.mechanism, b(0, 4))
  t:add(f.auth_len, b(4, 4))
  return "AUTH answer " .. (b(0, 4):int() == 1 and "KEY" or "NONE")
end

local function key(b, tree)
  tree:add(impi, b, "IMPI startup, key"):add(f.key, b)
  return "AUTH key"
end

-- TCP: channels and direct links --------------------------------------------------------

local function host_greeting(b, tree)
  tree:add(impi, b, "IMPI channel, greeting"):add(f.host_rank, b)
  return "greeting of host " .. b:uint()
end

local DIRECT = 0x49444c01
local direct_sizes = { 64, 40, 40, 44 }
local direct_names = { "HELLO", "CHALLENGE", "PROOF", "VERDICT" }

local function direct_greeting(b, tree)
  local kind = b(4, 4):uint()
  local t = tree:add(impi, b, "IMPI direct link, greeting")
  local info = "direct link " .. direct_names[kind]
  t:add(f.step, b(4, 4))
  if kind == 1 then
    t:add(f.job, b(8, 16))
    t:add(f.nonce, b(24, 32))
    t:add(f.from, b(56, 4))
    t:add(f.to, b(60, 4))
    info = info .. " " .. b(56, 4):uint() .. " -> " .. b(60, 4):uint()
  elseif kind == 2 then
    t:add(f.nonce, b(8, 32))
  elseif kind == 3 then
    t:add(f.mac, b(8, 32))
  else
    local item = t:add(f.verdict, b(8, 4))
    if b(8, 4):uint() ~= 0 then item:add_proto_expert_info(e.refused) end
    t:add(f.mac, b(12, 32))
    info = info .. " " .. b(8, 4):uint()
  end
  return info
end

local function plausible_host(host)
  local first = host(0, 1):uint()
  return (ipv4(host) and not is_zero(host)) or first == 0x20 or first == 0xfe or first == 0xfd or first == 0xfc
      or (first == 0 and host(15, 1):uint() == 1 and ipv4(host))
end

-- plausible tells whether a header at off looks like one of IMPI. FINI, which is nearly
-- empty, does only where IMPI is expected.
local function plausible(tvb, off, expected)
  if tvb:len() - off < HEADER then return false end
  local b = tvb(off, HEADER)
  local typ = b(0, 4):uint()
  if typ == FINI then return expected end
  if typ > FINI or not plausible_host(b(8, 16)) or not plausible_host(b(32, 16)) then return false end
  if typ > 1 then return true end
  return UInt64.new(b(4, 4):uint()) <= b(72, 8):uint64() and b(72, 2):uint() == 0
end

-- TCP: streams --------------------------------------------------------------------------

local stream_number = Field.new("tcp.stream")

-- streams has, for each TCP stream: role ("startup", "channel" or "direct"), the port of
-- who began, and for each direction the kinds of what was found, so that a packet that is
-- looked at again is seen as it was.
local streams = {}

function impi.init() streams, ports = {}, {} end

local function stream_of(pinfo)
  local n = stream_number()
  local id = n and n.value or 0
  if not streams[id] then streams[id] = { dir = {} } end
  local s, port = streams[id], pinfo.src_port
  local name = tostring(pinfo.src) .. "/" .. port
  if not s.dir[name] then s.dir[name] = { name = name, kinds = {}, found = 0, second = {} } end
  return s, s.dir[name]
end

local function is_command(b)
  return commands[b(0, 4):string()] or b(0, 4):string():match("^%u%u%u%u$") ~= nil
end

-- role tells what a stream is by its first bytes.
local function role(b)
  if is_command(b) then return "startup" end
  if b(0, 4):uint() == DIRECT then return "direct" end
  return "channel"
end

-- kind_at tells what begins at off: a kind and its length, nil and the bytes that are
-- missing, or "foreign".
local function kind_at(s, d, tvb, off, pinfo)
  local have = tvb:len() - off
  if have < 4 then return nil, 4 - have end
  local b = tvb(off)
  local known = d.kinds[pinfo.number .. "/" .. off]
  if not s.role then
    s.role = role(b)
    s.client = s.role == "startup" and b(0, 4):string() == "AUTH" and d.name or nil
  end
  if known == "greeting" or (not known and s.role == "channel" and d.found == 0 and
      (have == 4 or (plausible(tvb, off + 4, true) and not plausible(tvb, off, false)))) then
    return "greeting", 4
  end
  if have < 8 then return nil, 8 - have end
  if s.role == "startup" then
    if is_command(b) then
      local n = b(4, 4):uint()
      if n > MAX_COMMAND then return "foreign" end
      return "command", 8 + n
    end
    return d.name == s.client and "key" or "answer", 8
  end
  if s.role == "direct" and b(0, 4):uint() == DIRECT then
    local n = direct_sizes[b(4, 4):uint()]
    if not n then return "foreign" end
    return "direct", n
  end
  local typ = b(0, 4):uint()
  if typ > FINI then return "foreign" end
  return "packet", HEADER + (typ <= 1 and b(4, 4):uint() or 0)
end

local function show(kind, s, d, tvb, off, n, tree)
  if kind == "packet" then return packet(tvb, off, tree, impi.prefs.dialect) end
  local b = tvb(off, n)
  if kind == "greeting" then return host_greeting(b, tree) end
  if kind == "command" then
    local to_server
    if s.client then to_server = d.name == s.client end
    return command(b, tree, to_server)
  end
  if kind == "key" then return key(b, tree) end
  if kind == "answer" then return answer(b, tree) end
  return direct_greeting(b, tree)
end

function impi.dissector(tvb, pinfo, tree)
  local s, d = stream_of(pinfo)
  local off, infos = 0, {}
  pinfo.cols.protocol = "IMPI"
  while off < tvb:len() do
    local kind, n = kind_at(s, d, tvb, off, pinfo)
    if kind == "foreign" then
      tree:add(impi, tvb(off), "Not IMPI"):add_proto_expert_info(e.foreign)
      infos[#infos + 1] = "not IMPI"
      off = tvb:len()
      break
    end
    local missing = kind and off + n - tvb:len() or n
    if missing > 0 then
      pinfo.desegment_offset = off
      pinfo.desegment_len = kind and missing or DESEGMENT_ONE_MORE_SEGMENT
      break
    end
    local id = pinfo.number .. "/" .. off
    if not d.kinds[id] then
      d.kinds[id] = kind
      d.found = d.found + 1
    end
    infos[#infos + 1] = show(kind, s, d, tvb, off, n, tree)
    off = off + n
  end
  -- A segment that completes something is seen as two pieces; the column is appended to
  -- for the second.
  local piece = pinfo.number .. "/" .. tvb:len()
  if not pinfo.visited then
    if d.last == pinfo.number then d.second[piece] = true end
    if #infos > 0 then d.last = pinfo.number end
  end
  if #infos > 0 then pinfo.cols.info = (d.second[piece] and "; " or "") .. table.concat(infos, "; ") end
  return tvb:len()
end

local function heuristic(tvb, pinfo, tree)
  if not impi.prefs.heuristic or tvb:len() < 4 then return false end
  local ours = (ports[pinfo.dst_port] or ports[pinfo.src_port]) and tvb(0, 4):uint() < 65536
  if not ours and tvb:len() >= 8 then
    local first = tvb(0, 4):string()
    ours = (first == "AUTH" and tvb(4, 4):uint() == 4 and tvb:len() == 12)
        or (first == "COLL" and tvb:len() >= 12 and labels[tvb(8, 4):uint()] ~= nil)
        or (tvb(0, 4):uint() == DIRECT and direct_sizes[tvb(4, 4):uint()] ~= nil)
        or plausible(tvb, 0, false) or plausible(tvb, 4, false)
  end
  if not ours then return false end
  impi.dissector(tvb, pinfo, tree)
  pinfo.conversation = impi
  return true
end

impi:register_heuristic("tcp", heuristic)
DissectorTable.get("tcp.port"):add_for_decode_as(impi)
