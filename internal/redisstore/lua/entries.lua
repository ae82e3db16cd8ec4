-- entries.lua: what a booking's entry says of where its units are counted, and how they are taken back.

-- What an entry has of an account: the code of what it is kept in, 'N' if in no log; the
-- number of its first unit in 7 bytes; its units in 5; and of how many limits there is
-- something more to know, in 1, and that.
local PART, MORE = 14, 29

-- parse reads an entry as a booking names it: QUEUE, a zero, and a part for each account.
local function parse(entry)
  local queue, rest = string.match(entry, '^([^%z]*)%z(.*)$')
  local parts, at = {}, 1
  while queue and at + PART - 1 <= #rest do
    local code, number, cost, more = struct.unpack('>c1I7I5I1', rest, at)
    at = at + PART + more * MORE
    parts[#parts + 1] = {
      code = code, number = number, cost = cost,
      more = string.sub(rest, at - more * MORE, at - 1),
    }
  end
  if not parts[1] or at ~= #rest + 1 then
    return nil
  end
  return queue, parts
end

-- The part of an account that was charged with no units.
local NOTHING = struct.pack('>c1I7I5I1', 'N', 0, 0, 0)

-- meterID returns what an account's meter of a unit is kept as.
local function meterID(accountID, unit)
  return accountID .. '_' .. unit
end

-- unitOf returns the unit that '*UNIT' stands for, or nil.
local function unitOf(id)
  return string.match(id, '^%*(.+)$')
end

-- besideIn returns what a booking of a queue is charged to beside its account: shared accounts, and the units of meters
-- behind a '*'.
local function besideIn(queue)
  local ids = {}
  for id in string.gmatch(string.match(queue, '~[^~]*~(.*)$') or '', '[^,]+') do
    ids[#ids + 1] = id
  end
  return ids
end

-- chargedBy returns all that a booking of an account is charged to, in the order of its parts.
local function chargedBy(queue, accountID)
  local ids = besideIn(queue)
  for i, id in ipairs(ids) do
    local unit = unitOf(id)
    ids[i] = unit and meterID(accountID, unit) or id
  end
  table.insert(ids, 1, accountID)
  return ids
end

-- partOf returns the place of an account's part in an entry of that queue.
local function partOf(queue, accountID)
  for i, id in ipairs(besideIn(queue)) do
    local unit = unitOf(id)
    if id == accountID or unit and string.sub(accountID, -#unit - 1) == '_' .. unit then
      return i + 1
    end
  end
  return 1
end

-- counts reports whether the units of an entry's part are still counted.
local function counts(account, queue, slot, part)
  if part.code == 'N' then
    local from = tonumber(account.fields.from)
    local given = from and (account.total - from) % MODULUS
    return from and not account.set.log and (part.number - from) % MODULUS + part.cost <= given
  end
  local log = logOf(account, scopesOf(queue))
  return part.code == account.kind and log and logHolds(log, slot, part.number, part.cost)
end

-- countedAs returns the part under which the units of an entry's part are counted, or nil. They have
-- another number if they were recorded again.
local function countedAs(account, queue, slot, part)
  if counts(account, queue, slot, part) then
    return part
  end
  local other = account.fields.again and
    call('HGET', againKey(account), struct.pack(AGAIN, slot, part.code, part.number, part.cost))
  local _, parts = parse('\0' .. (other or ''))
  return parts and counts(account, queue, slot, parts[1]) and parts[1] or nil
end

-- noteAgain notes under which part the units of an entry's part were recorded again.
local function noteAgain(account, slot, part, other)
  call('HSET', againKey(account), struct.pack(AGAIN, slot, part.code, part.number, part.cost), other)
  account.fields.again, account.dirty.again, account.fresh = '1', true, true
end

-- knownAt returns what a part has of one limit: some pieces, of which all but the last have the highest bit set.
local function knownAt(more, at)
  local last = at
  while last + MORE <= #more and string.byte(more, last) >= 128 do
    last = last + MORE
  end
  return string.sub(more, at, last + MORE - 1)
end

-- setUnits makes a part of an entry, which must be counted as this, one of so many units, of which there were
-- some before. It returns the part as it is then, and whether anything is free that was not.
local function setUnits(account, queue, slot, part, units)
  local scopes, at, less, more = scopesOf(queue), 1, part.cost - units, {}
  local number = part.number
  if less > 0 then
    account.fields.back, account.dirty.back = text(tonumber(account.fields.back or 0) + less), true
  end
  if part.code ~= 'N' then
    local log = logOf(account, scopes)
    account.ordered = nil
    if less > 0 then
      takeFromLog(account, log, slot, number + units, less)
    elseif less < 0 then -- the numbers behind are others'
      takeFromLog(account, log, slot, number, part.cost)
      account.fields.back, account.dirty.back = text(tonumber(account.fields.back or 0) + part.cost), true
      number = addToLog(account, log, slot, units)
    end
  elseif less < 0 then
    account.total = (account.total - less) % MODULUS
  end
  for _, m in ipairs(account.limits) do
    if counters[m.code] and covers(m.scope, scopes) and slot > account.renewed then
      local known = counters[m.code].remembers and knownAt(part.more, at)
      at = at + #(known or '')
      if less < 0 then
        counters[m.code].record(m, slot, -less)
      elseif less > 0 then
        local gone = known
        if known and units > 0 then
          gone, known = counters[m.code].split(m, known, less)
        end
        counters[m.code].cancel(m, slot, less, gone)
      end
      more[#more + 1] = known or nil
    end
  end
  account.booked = account.booked + math.max(0, -less)
  if units == 0 then
    return NOTHING, less > 0
  end
  more = table.concat(more)
  return struct.pack('>c1I7I5I1', part.code, number, units, #more / MORE) .. more, less > 0
end

-- takeBack takes a part of an entry back, if it is still counted.
local function takeBack(account, queue, slot, part)
  part = countedAs(account, queue, slot, part)
  if part then
    setUnits(account, queue, slot, part, 0)
    account.ahead = account.ahead or slot >= account.now
  end
end
