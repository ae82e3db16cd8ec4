-- holes.lua: bookings that were handed back.
--
-- The set of free ones has an account's, by their slot, named as in the answer to
-- the booking. One that has not come counts as before, and the next booker of its
-- lane whose cost is no greater takes it or a part of it: every limit of every
-- account counts it already. cancelled.go is the same in Go.

-- handedBack returns the first hole of the lane that is of at least cost units
-- and has not come before from, and its slot. Limits that were lowered since may
-- have no room for it.
local function handedBack(charges, lane, from)
  local charge = charges[1]
  if not charge.handedBack then
    return nil
  end
  local holes = call('ZRANGEBYSCORE', charge.free, text(from), '+inf', 'WITHSCORES')
  for i = 1, #holes, 2 do
    local name, parts = parse(holes[i])
    if name == lane.name then
      local slot = tonumber(holes[i + 1])
      local _, _, before, size = parsePart(parts, 1)
      if size >= lane.cost and before + size <= MODULUS then
        local none = {name = lane.name, scopes = lane.scopes, keep = lane.keep, cost = 0}
        if charge.first or settle(charges, slot, none) == slot then
          return holes[i], slot
        end
      end
    end
  end
  return nil
end

-- take books a hole, or as much of it as cost is, and returns the entry. Every
-- limit counts it already.
local function take(charges, lane, hole, slot)
  local _, parts = parse(hole)
  local mine, rest = {}, {}
  for i, charge in ipairs(charges) do
    local letter, number, before, size = parsePart(parts, i)
    local first = i == 1 and '' or '!'
    local function free(part)
      return first .. lane.name .. '\0' .. part
    end
    mine[i] = rename(parts, i, before, lane.cost)
    if size > lane.cost then
      rest[i] = rename(parts, i, before + lane.cost, size - lane.cost)
      local run = letter ~= 'N' and has(charge, slot, lane.scopes, letter, number, before, size)
      if run then
        run.kind.split(run, slot, before, lane.cost)
      end
    end
    if i > 1 then
      call('ZREM', charge.free, free(string.sub(parts, (i - 1) * PART + 1, i * PART)))
      if rest[i] then
        call('ZADD', charge.free, text(slot), free(rest[i]))
      end
    end
  end
  call('ZREM', charges[1].free, hole)
  if rest[1] then
    call('ZADD', charges[1].free, text(slot), lane.name .. '\0' .. table.concat(rest))
  end
  for _, charge in ipairs(charges) do
    noteUnsure(charge)
  end
  return lane.name .. '\0' .. table.concat(mine)
end

-- giveBack makes an entry a hole: another may bear its name if the log was lost,
-- or has been handed back down to it. Holes at the end of a log are removed
-- instead: nothing was booked behind them.
local function giveBack(entry, account, slot, now)
  local lane, parts = parse(entry)
  if not lane then
    return
  end
  local ids = sharedIn(lane)
  table.insert(ids, 1, account)
  if #parts ~= #ids * PART then
    return
  end
  for i, id in ipairs(ids) do
    local charge = readCharge(id, nil, now)
    local letter, number, before, cost = parsePart(parts, i)
    local name = entry
    if i > 1 then
      name = '!' .. lane .. '\0' .. string.sub(parts, (i - 1) * PART + 1, i * PART)
    end
    local run = has(charge, slot, scopesOf(lane), letter, number, before, cost)
    if run and not call('ZSCORE', charge.free, name) then
      if letter ~= 'N' then
        run.kind.split(run, slot, before, cost)
      end
      call('ZADD', charge.free, text(slot), name)
      call('HSET', charge.key, 'free', '1')
      local ttl = call('PTTL', charge.key)
      if ttl > 0 then
        call('PEXPIRE', charge.free, ttl)
      end
      -- What only a log counts, and one lane only, can be undone.
      if lane == '' and letter ~= 'N' and not charge.fields.runs and
        not string.find(charge.fields.limits or '', ' [FWUG] ') then
        for _ = 1, HOLES + 1 do
          local tail = run.kind.last(run)
          if not tail or call('ZREM', charge.free, '\0' .. letter .. '0' .. tail) == 0 then
            break
          end
          run.kind.cut(run)
        end
        if not run.kind.last(run) then
          -- Empty, not lost.
          call('HDEL', base, 'has:' .. id)
        end
      end
      if call('ZCARD', charge.free) > HOLES then
        call('ZREMRANGEBYRANK', charge.free, 0, 0)
      end
      local known = call('HGET', base, 'has:' .. id)
      if known then
        local last = call('ZRANGE', charge.free, -1, -1, 'WITHSCORES')[2]
        call('HSET', base, 'has:' .. id,
          string.sub(known, 1, 16) .. struct.pack('>I8I8', 0, tonumber(last or 0)) .. string.sub(known, 33))
      end
    end
  end
end
