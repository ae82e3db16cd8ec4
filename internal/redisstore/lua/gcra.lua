-- gcra.lua: time that bookings take.
--
-- n units take n * Window / Max of time. Every booking takes that much for itself: it
-- begins not before the booking's slot, and ends no later than Burst units after it. Who
-- books takes the first that is free. What is free from there on begins at the tail,
-- which is the theoretical arrival time (TAT) of GCRA:
--
--   at      it, in whole microseconds
--   part    the rest, of which Max are a microsecond: rounded at every booking, a
--           burst of three at three a second would not leave at once
--   gaps    1 if time may be free before it, behind now: between bookings that wait, and
--           where some were cancelled. It is in a sorted set: from when to when, in 7
--           and 5 bytes each, and the whole microseconds of the end as the score
--   max     the Max that parts are of. Of another they are at most a microsecond
--
-- With a Burst of 1 this is the plain leaky bucket, with a Burst of n the token
-- bucket of n.
--
-- The promise: at most Max + Burst - 1 units in any window, with a Burst of 1 at
-- most Max. What leaves within d takes time of its own between the first slot and Burst
-- units after the last, Burst + Max * d / Window units, and d is less than Window. Burst
-- units at once and then one every Window / Max are as many.
--
-- The margin: the provider admits a call if its TAT then is at most Burst - cost units
-- after the call's arrival. So it admits all, in whatever order they arrive, if from
-- any call to any later one, both included, at most Burst units leave and what runs
-- out between their arrivals. The one may arrive a margin late and the other at once:
-- so time ends a margin earlier than Burst units after the slot. The last units of a
-- burst wait for that, up to a margin. Where Burst - 1 units take less than the margin a
-- booking takes the difference as well.

do
  -- What a booking took, as its entry has it: from when to when, and the Max that parts are of. If there is more of the
  -- same limit behind it the first byte has its highest bit set.
  local TAKEN = '>I7I5I7I5I5'

  -- packed returns pieces as an entry has them.
  local function packed(pieces)
    local all = {}
    for i, p in ipairs(pieces) do
      all[i] = struct.pack(TAKEN, math.max(0, p.from), p.fromPart, p.to, p.toPart, p.max)
      if i < #pieces then
        all[i] = string.char(string.byte(all[i]) + 128) .. string.sub(all[i], 2)
      end
    end
    return table.concat(all)
  end

  -- piecesOf reads what packed has packed.
  local function piecesOf(known)
    local all = {}
    for i = 1, #known - #known % MORE, MORE do
      local first, p = string.byte(known, i), {}
      p.from, p.fromPart, p.to, p.toPart, p.max = struct.unpack(TAKEN,
        string.char(first % 128) .. string.sub(known, i + 1, i + MORE - 1))
      all[#all + 1] = p
    end
    return all
  end

  -- rescale makes the bucket's parts those of the Max that rules.
  local function rescale(m)
    gaps.drop(m)
    if get(m, 'max') ~= m.max then
      put(m, 'max', m.max)
      writeBucket(m, readBucket(m))
    end
  end

  -- giveBack gives back a piece of what a booking took, as far as it is ahead.
  local function giveBack(m, piece)
    local from, fromPart, to, toPart = piece.from, piece.fromPart, piece.to, piece.toPart
    if piece.max ~= m.max then
      from, fromPart, toPart = fromPart > 0 and from + 1 or from, 0, 0
    end
    local now, at, part = m.account.now, readBucket(m)
    if from < now then
      from, fromPart = now, 0
    end
    if isAfter(to, toPart, at, part) then
      to, toPart = at, part
    end
    -- What has passed may have been removed from the log: then nothing changes.
    if not isAfter(to, toPart, from, fromPart) then
      return
    end
    rescale(m)
    -- It and the gaps that it touches become one. No two of those touch, so they are few.
    local near = get(m, 'gaps') and call('ZRANGEBYSCORE', gaps.keyOf(m), text(from), '+inf', 'LIMIT', 0, 8)
    for _, member in ipairs(near or {}) do
      local begins, beginsPart, ends, endsPart = gaps.read(m, member)
      if not isAfter(from, fromPart, ends, endsPart) and not isAfter(begins, beginsPart, to, toPart) then
        if isAfter(from, fromPart, begins, beginsPart) then
          from, fromPart = begins, beginsPart
        end
        if isAfter(ends, endsPart, to, toPart) then
          to, toPart = ends, endsPart
        end
        call('ZREM', gaps.keyOf(m), member)
      end
    end
    if not isAfter(at, part, to, toPart) then
      writeBucket(m, from, fromPart)
    else
      gaps.free(m, from, fromPart, to, toPart)
    end
  end

  counters.G = {
    -- Who keeps a share back finds the burst smaller by that share, by a part of a
    -- unit even: with a Burst of 1 it leaves gaps between its units and those before.
    earliest = function(m, from, cost, max)
      local size = max < m.max and m.extra * max / m.max or m.extra
      local _, slot = gaps.find(m, from, cost, size)
      return gaps.pieces(m, from, cost, size, slot) or slot, nil
    end,

    commit = function(m, slot, cost)
      rescale(m)
      local gap, alone, begins, beginsPart, ends, endsPart = gaps.find(m, slot, cost, m.extra)
      local early, several = gaps.pieces(m, slot, cost, m.extra, alone > slot and slot + 1 or slot)
      if early then
        local taken = {}
        for i, one in ipairs(several) do
          gaps.takeOf(m, one)
          taken[i] = {
            from = one.at, fromPart = one.part, to = one.ends, toPart = one.endsPart, max = m.max
          }
        end
        return packed(taken)
      end
      local at, part = readBucket(m)
      if gap then
        at, part = gap.from, gap.fromPart
      end
      -- It takes what it must so that the slot could be no earlier, and no more.
      local x, xPart = at, part
      if behind(m, at, part, cost - m.extra) + m.margin < slot then
        local latest = slot - m.margin + emission(m, m.extra - cost)
        x, xPart = begins, beginsPart
        if isAfter(begins, beginsPart, latest, 0) then
          x, xPart = latest, 0
        end
        if isAfter(at, part, x, xPart) then
          x, xPart = at, part
        end
      end
      if gap then
        call('ZREM', gaps.keyOf(m), gap.member)
        gaps.free(m, at, part, x, xPart)
        gaps.free(m, ends, endsPart, gap.to, gap.toPart)
      else
        if at < m.account.now then
          at, part = m.account.now, 0
        end
        gaps.free(m, at, part, x, xPart)
        writeBucket(m, ends, endsPart)
      end
      return struct.pack(TAKEN, math.max(0, x), xPart, ends, endsPart, m.max)
    end,

    cancel = function(m, _, _, known)
      for _, piece in ipairs(piecesOf(known)) do
        giveBack(m, piece)
      end
    end,

    -- The units that go are the last ones.
    split = function(m, known, units)
      local all, back = piecesOf(known), {}
      if not all[1] then
        return known, known
      end
      local of = {window = m.window, max = all[1].max}
      local left, leftPart = emission(of, units)
      while all[1] and isAfter(left, leftPart, 0, 0) do
        local last = all[#all]
        local length, lengthPart = minus(of, last.to, last.toPart, last.from, last.fromPart)
        local gone = {from = last.from, fromPart = last.fromPart, to = last.to, toPart = last.toPart, max = last.max}
        if isAfter(length, lengthPart, left, leftPart) then
          last.to, last.toPart = minus(of, last.to, last.toPart, left, leftPart)
          gone.from, gone.fromPart = last.to, last.toPart
          left, leftPart = 0, 0
        else
          left, leftPart = minus(of, left, leftPart, length, lengthPart)
          if #all > 1 then
            all[#all] = nil
          else -- a limit has one at least, by which it is told from the next
            last.to, last.toPart, left, leftPart = last.from, last.fromPart, 0, 0
          end
        end
        back[#back + 1] = gone
      end
      return packed(back), packed(all)
    end,

    -- Whatever was spent, the provider's bucket is at most full, and at most full again when
    -- the last that is booked has left.
    record = function(m, slot, cost)
      if slot <= (m.account.known or 0) then
        return -- it is told of it as a whole: record.lua
      end
      rescale(m)
      local left, leftPart = gaps.take(m, slot, emission(m, math.min(cost, m.extra)))
      local at, part = readBucket(m)
      local full, rest = plus(m, math.max(slot, m.account.edge), 0, m.extra)
      if isAfter(at, part, full, rest) or not isAfter(left, leftPart, 0, 0) then
        return
      end
      -- A bucket that is not yet empty takes it as if it fell later: in whatever order
      -- bookings are recorded, the TAT is never too early.
      if not isAfter(at, part, slot, 0) then
        at, part = slot, 0
      end
      at, part = more(m, at, part, left, leftPart)
      if isAfter(at, part, full, rest) then
        at, part = full, rest
      end
      writeBucket(m, at, part)
    end,

    -- Used is what is yet to run out, and what the burst does not hold of it is booked ahead.
    usage = function(m, now)
      local parts, some = gaps.busy(m, now, math.huge)
      local used = math.ceil(parts / m.window)
      if used <= 0 then -- less: a clock has stepped back
        return 0, 0, 0
      end
      -- So much may be left: it is the last of what is taken.
      local rest = (math.min(used, m.extra) - 1) * m.window
      local at, part = readBucket(m)
      for i = #some, 1, -1 do
        local from, fromPart, to, toPart = gaps.read(m, some[i])
        local taken = (at - to) * m.max + part - toPart
        if taken > rest then
          break
        end
        rest, at, part = rest - taken, from, fromPart
        if from < m.account.now then
          at, part = m.account.now, 0
        end
      end
      return math.min(used, m.extra), math.max(0, used - m.extra), at + math.ceil((part - rest) / m.max)
    end,

    mostAtOnce = function(limit)
      return math.min(limit.extra, limit.max)
    end,

    ownKey = gaps.keyOf,

    drained = function(m, from, to)
      return math.ceil((to - from) * m.max / m.window)
    end,

    -- All that a bucket remembers. What else has left in the window matters no more,
    -- and enter would not count it.
    left = function(m, slot)
      local most = m.extra * m.window
      return math.ceil(math.min(gaps.busy(m, slot, most), most) / m.window)
    end,

    remembers = true,

    front = function(m)
      if get(m, 'gaps') or get(m, 'max') ~= m.max then
        return nil
      end
      local at, part = readBucket(m)
      return 'G', {at, part, m.extra, 0, m.max, m.margin, m.window}
    end,

    -- An empty bucket is kept for a window more, for a clock that steps back.
    trim = function(m, now)
      local at = get(m, 'at')
      if at and at < now - m.window - m.margin then
        put(m, 'at', nil)
        put(m, 'part', nil)
        gaps.dropAll(m)
      end
    end,
  }
end
