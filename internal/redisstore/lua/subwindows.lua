-- subwindows.lua: counts in sub-windows of EXTRA microseconds, aligned at the
-- epoch.
--
-- Kept are the cells that hold a booking, in order: 14 bytes each, where it begins (7
-- bytes) and its units, the most significant byte first. Those of SPAN sub-windows are
-- one field, NAME:NUMBER, so that of many only those are read that count.
--
-- A cell is one of the two parts of a sub-window: a window that ends in the first
-- overlaps one sub-window more than a window that ends in the second. Where in a
-- cell a booking lies is not known, so a window counts all of the sub-windows that
-- it overlaps, up to the cell in which it ends. No window of any alignment holds
-- more than Max, then, and a unit is free again later than in a log by less than
-- one sub-window. Sub-windows of a microsecond are a log.
--
-- The margin makes the window longer, as a log's is: then no provider refuses that
-- counts a call for no longer than a window after it arrived. With another margin
-- sub-windows have other parts; cells that were begun before only seem to end late.

-- A script may have 200 names of its own at a time: these are known here only.
do
  -- cellOf returns where an instant's cell begins.
  local function cellOf(m, instant)
    local begins = instant - instant % m.extra
    local second = begins + (m.window + m.margin - 1) % m.extra
    return instant >= second and second or begins
  end

  -- oldestSub returns where the oldest sub-window begins that counts at an instant:
  -- that of the first instant in (instant - window, instant].
  local function oldestSub(m, instant)
    local first = math.max(0, instant - m.window - m.margin + 1)
    return first - first % m.extra
  end

  -- leavesCell returns the first instant at which a cell counts no more.
  local function leavesCell(m, begins)
    return begins - begins % m.extra + m.extra - 1 + m.window + m.margin
  end

  local SPAN, CELL = 32, 14

  -- blockOf returns the number of the block in which a cell is.
  local function blockOf(m, begins)
    local length = m.extra * SPAN
    return (begins - begins % length) / length
  end

  -- blocksOf returns the numbers of the blocks that there are, in order.
  local function blocksOf(m)
    if not m.blocks then
      m.blocks = {}
      for i, kept in ipairs(keptOf(m)) do
        m.blocks[i] = tonumber(kept.name)
      end
      table.sort(m.blocks)
    end
    return m.blocks
  end

  local function readBlock(m, number)
    return m.account.fields[m.name .. text(number)] or ''
  end

  local function writeBlock(m, number, block)
    local name = m.name .. text(number)
    m.account.fields[name], m.account.dirty[name] = block ~= '' and block or nil, true
    if block == '' then
      m.blocks = nil
    end
  end

  -- readCells reads in order where cells begin, and the units of each and all before it:
  -- of those that count at an instant or later, and perhaps some that are older; of
  -- those that begin after last it may leave some out.
  local function readCells(m, instant, last)
    local from = blockOf(m, oldestSub(m, instant))
    if m.from and m.from <= from then
      return m.begins, m.sums
    end
    local begins, sums, count = {}, {}, 0
    for _, number in ipairs(blocksOf(m)) do
      if number >= from and number * m.extra * SPAN <= last then
        local block = readBlock(m, number)
        -- Four at once are read in half the time.
        for at = 1, #block - 3 * CELL, 4 * CELL do
          begins[count + 1], sums[count + 1], begins[count + 2], sums[count + 2],
            begins[count + 3], sums[count + 3], begins[count + 4], sums[count + 4] =
            struct.unpack('>I7I7I7I7I7I7I7I7', block, at)
          count = count + 4
        end
        for at = #block - #block % (4 * CELL) + 1, #block, CELL do
          count = count + 1
          begins[count], sums[count] = struct.unpack('>I7I7', block, at)
        end
      end
    end
    local sum = 0
    for i = 1, count do
      sum = sum + sums[i]
      sums[i] = sum
    end
    sums[0] = 0
    if last == math.huge then
      m.from, m.begins, m.sums = from, begins, sums
    end
    return begins, sums
  end

  -- firstCell returns the place of the first cell that begins no earlier.
  local function firstCell(begins, instant)
    local low, high = 1, #begins + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if begins[middle] < instant then
        low = middle + 1
      else
        high = middle
      end
    end
    return low
  end

  local function addToCell(m, slot, cost)
    local begins = cellOf(m, slot)
    local number = blockOf(m, begins)
    local block = readBlock(m, number)
    if block == '' then
      m.blocks = nil
    end
    -- Behind the last cell that begins no later.
    local at, recorded, found = #block, cost, false
    while at > 0 do
      local first, units = struct.unpack('>I7I7', block, at - CELL + 1)
      if first <= begins then
        found = first == begins
        recorded = found and math.max(0, units + cost) or cost
        break
      end
      at = at - CELL
    end
    local before = found and at - CELL or at
    local cell = recorded > 0 and struct.pack('>I7I7', begins, recorded) or ''
    writeBlock(m, number, string.sub(block, 1, before) .. cell .. string.sub(block, at + 1))
    m.from = nil
  end

  counters.U = {
    -- The slot moves ahead to where enough has left, or to the last cell ahead whose
    -- window would become too full. Each cell ahead is passed once.
    earliest = function(m, from, cost, max)
      local begins, sums = readCells(m, from, math.huge)
      local room, slot = max - cost, from
      -- From low up to high is what counts at the slot, from first up to ahead what
      -- counts in the last cell that was looked at.
      local low, high = firstCell(begins, oldestSub(m, slot)), firstCell(begins, slot + 1)
      local first, ahead, blocked = low, high, -1
      while true do
        local oldest = oldestSub(m, slot)
        while begins[high] and begins[high] <= slot do
          high = high + 1
        end
        while low < high and begins[low] < oldest do
          low = low + 1
        end
        if sums[high - 1] - sums[low - 1] > room then
          repeat
            low = low + 1
          until sums[high - 1] - sums[low - 1] <= room
          slot = leavesCell(m, begins[low - 1])
        else
          while begins[ahead] do
            oldest = oldestSub(m, begins[ahead])
            if oldest > slot then
              break
            end
            while begins[first] < oldest do
              first = first + 1
            end
            if sums[ahead] - sums[first - 1] > room then
              blocked = begins[ahead]
            end
            ahead = ahead + 1
          end
          if blocked <= slot then
            -- With cells ahead only this booking was looked at.
            return slot, not begins[high] and room + cost - sums[high - 1] + sums[low - 1] or nil
          end
          slot = blocked
        end
      end
    end,

    commit = addToCell,
    record = addToCell,

    cancel = function(m, slot, cost)
      addToCell(m, slot, -cost)
    end,

    usage = function(m, now)
      local begins, sums = readCells(m, now, math.huge)
      local first = firstCell(begins, oldestSub(m, now))
      local used = sums[#begins] - sums[first - 1]
      if used == 0 then
        return 0, 0, 0
      end
      local ahead = sums[#begins] - sums[firstCell(begins, now + 1) - 1]
      local leaving = sums[first - 1] + math.max(1, used - m.max + 1)
      while sums[first] < leaving do
        first = first + 1
      end
      return used - ahead, ahead, leavesCell(m, begins[first])
    end,

    left = function(m, slot)
      local begins, sums = readCells(m, slot, slot)
      return sums[firstCell(begins, slot + 1) - 1] - sums[firstCell(begins, oldestSub(m, slot)) - 1]
    end,

    namedByExtra = true,

    front = function(m)
      local begins, sums = readCells(m, m.account.edge, math.huge)
      local last = #begins
      local first = cellOf(m, m.account.edge)
      if begins[last] ~= first then
        return nil
      end
      local units = sums[last] - sums[last - 1]
      local second = first - first % m.extra + (m.window + m.margin - 1) % m.extra
      local ends = first < second and second or first - first % m.extra + m.extra
      local others = sums[last - 1] - sums[firstCell(begins, oldestSub(m, first)) - 1]
      return 'U', {first, units, ends, 0, math.max(0, m.max - others)}
    end,

    -- What a clock would need that steps back by a window is kept.
    trim = function(m, now)
      local oldest = oldestSub(m, now - m.window - m.margin)
      local last = blockOf(m, oldest)
      for _, number in ipairs(blocksOf(m)) do
        if number > last then
          break
        end
        local block, gone = readBlock(m, number), 0
        while gone < #block and (number < last or struct.unpack('>I7', block, gone + 1) < oldest) do
          gone = gone + CELL
        end
        if gone > 0 then
          writeBlock(m, number, string.sub(block, gone + 1))
          m.from = nil
        end
      end
    end,
  }
end
