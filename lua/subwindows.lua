-- subwindows.lua: counts in sub-windows of EXTRA microseconds, aligned at the
-- epoch.
--
-- Kept is one number for each cell that holds a booking, by where the cell begins.
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

-- cellFields returns the fields that hold cells, by the name of their limit: all
-- limits' are read at once.
local function cellFields(charge)
  if not charge.cellFields then
    charge.cellFields = {}
    for name, value in pairs(charge.fields) do
      local of, begins = string.match(name, '^(U/.*:)(%d+)$')
      if of then
        charge.cellFields[of] = charge.cellFields[of] or {}
        charge.cellFields[of][tonumber(begins)] = tonumber(value)
      end
    end
  end
  return charge.cellFields
end

-- readCells reads the cells in order. What has passed unused counts for
-- nothing in them.
local function readCells(m)
  if m.cells then
    return m.cells
  end
  m.cells, m.cellAt = {}, {}
  for begins, entered in pairs(cellFields(m.charge)[m.name] or {}) do
    local cell = {begins = begins, entered = entered, unused = 0}
    m.cells[#m.cells + 1], m.cellAt[begins] = cell, cell
  end
  for _, hole in ipairs(m.charge.passed) do
    local cell = m.cellAt[cellOf(m, hole.slot)]
    if cell and hole.slot > m.charge.renewed and covers(m.scope, hole.scopes) then
      cell.unused = cell.unused + hole.cost
    end
  end
  for _, cell in ipairs(m.cells) do
    cell.units = math.max(0, cell.entered - cell.unused)
  end
  table.sort(m.cells, function(a, b) return a.begins < b.begins end)
  return m.cells
end

local function enterCell(m, slot, cost)
  readCells(m)
  local begins = cellOf(m, slot)
  local cell = m.cellAt[begins]
  put(m, text(begins), (cell and cell.entered or 0) + cost)
  if cell then
    cell.entered = cell.entered + cost
    cell.units = math.max(0, cell.entered - cell.unused)
  else
    local cells, at = m.cells, #m.cells + 1
    while at > 1 and cells[at - 1].begins > begins do
      at = at - 1
    end
    cell = {begins = begins, entered = cost, unused = 0, units = cost}
    table.insert(cells, at, cell)
    m.cellAt[begins] = cell
  end
end

counters.U = {
  -- The slot moves ahead to where enough has left, or to the last cell ahead whose
  -- window would become too full. Each cell is passed once.
  earliest = function(m, from, cost, max)
    local cells, room, slot = readCells(m), max - cost, from
    -- From low up to high is what counts at the slot, from first up to ahead what
    -- counts in the last cell that was looked at.
    local low, high, units = 1, 1, 0
    local first, ahead, later, blocked = 1, 1, 0, -1
    while true do
      local oldest = oldestSub(m, slot)
      while cells[high] and cells[high].begins <= slot do
        units, high = units + cells[high].units, high + 1
      end
      while low < high and cells[low].begins < oldest do
        units, low = units - cells[low].units, low + 1
      end
      if units > room then
        repeat
          units, low = units - cells[low].units, low + 1
        until units <= room
        slot = leavesCell(m, cells[low - 1].begins)
      else
        while cells[ahead] do
          oldest = oldestSub(m, cells[ahead].begins)
          if oldest > slot then
            break
          end
          later = later + cells[ahead].units
          while cells[first].begins < oldest do
            later, first = later - cells[first].units, first + 1
          end
          if later > room then
            blocked = cells[ahead].begins
          end
          ahead = ahead + 1
        end
        if blocked <= slot then
          return slot
        end
        slot = blocked
      end
    end
  end,

  commit = enterCell,
  enter = enterCell,

  usage = function(m, now)
    local cells, oldest, used = readCells(m), oldestSub(m, now), 0
    for _, cell in ipairs(cells) do
      used = used + (cell.begins >= oldest and cell.units or 0)
    end
    if used == 0 then
      return 0, 0
    end
    local leaving = math.max(1, used - m.max + 1)
    for _, cell in ipairs(cells) do
      leaving = leaving - (cell.begins >= oldest and cell.units or 0)
      if leaving <= 0 then
        return used, leavesCell(m, cell.begins)
      end
    end
  end,

  left = function(m, slot)
    local oldest, units = oldestSub(m, slot), 0
    for _, cell in ipairs(readCells(m)) do
      units = units + (cell.begins >= oldest and cell.begins <= slot and cell.units or 0)
    end
    return units
  end,

  -- What a clock would need that steps back by a window is kept.
  trim = function(m, now)
    local oldest = oldestSub(m, now - m.window - m.margin)
    local cells, kept, gone = readCells(m), {}, 0
    while cells[gone + 1] and cells[gone + 1].begins < oldest do
      gone = gone + 1
      put(m, text(cells[gone].begins), nil)
      m.cellAt[cells[gone].begins] = nil
    end
    if gone > 0 then
      for i = gone + 1, #cells do
        kept[i - gone] = cells[i]
      end
      m.cells = kept
    end
  end,
}
