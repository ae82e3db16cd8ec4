-- subwindows.lua: counts in sub-windows of EXTRA microseconds, aligned at the
-- epoch.
--
-- Kept is one number for each cell that holds a booking, by its index. A cell is
-- one of the two parts of a sub-window, 2i and 2i + 1: a window that ends in the
-- first overlaps one sub-window more than a window that ends in the second. Where
-- in a cell a booking lies is not known, so a window counts all of the sub-windows
-- that it overlaps, up to the cell in which it ends. No window of any alignment
-- holds more than Max, then, and a unit is free again later than in a log by less
-- than one sub-window. Sub-windows of a microsecond are a log.
--
-- The margin makes the window longer, as a log's is: then no provider refuses that
-- counts a call for no longer than a window after it arrived.

-- beginsCell returns the first instant of a cell.
local function beginsCell(m, cell)
  return math.floor(cell / 2) * m.extra + cell % 2 * ((m.window + m.margin - 1) % m.extra)
end

local function cellOf(m, instant)
  local cell = 2 * math.floor(instant / m.extra)
  return instant >= beginsCell(m, cell + 1) and cell + 1 or cell
end

-- oldestCell returns the first cell that counts at an instant: that of the first
-- instant in (instant - window, instant], with what comes before it in the same
-- sub-window.
local function oldestCell(m, instant)
  return 2 * math.floor(math.max(0, instant - m.window - m.margin + 1) / m.extra)
end

-- leavesCell returns the first instant at which a cell counts no more.
local function leavesCell(m, cell)
  return (math.floor(cell / 2) + 1) * m.extra - 1 + m.window + m.margin
end

-- readCells reads the cells in order. What has passed unused counts for
-- nothing in them.
local function readCells(m)
  if m.cells then
    return m.cells
  end
  m.cells, m.cellAt = {}, {}
  for name, value in pairs(m.charge.fields) do
    if string.sub(name, 1, #m.name) == m.name then
      local cell = {index = tonumber(string.sub(name, #m.name + 1)), entered = tonumber(value), unused = 0}
      m.cells[#m.cells + 1], m.cellAt[cell.index] = cell, cell
    end
  end
  for _, hole in ipairs(m.charge.passed) do
    local cell = m.cellAt[cellOf(m, hole.slot)]
    if cell and covers(m.scope, hole.scopes) then
      cell.unused = cell.unused + hole.cost
    end
  end
  for _, cell in ipairs(m.cells) do
    cell.units = math.max(0, cell.entered - cell.unused)
  end
  table.sort(m.cells, function(a, b) return a.index < b.index end)
  return m.cells
end

local function enterCell(m, slot, cost)
  readCells(m)
  local index = cellOf(m, slot)
  local cell = m.cellAt[index]
  put(m, text(index), (cell and cell.entered or 0) + cost)
  if cell then
    cell.entered = cell.entered + cost
    cell.units = math.max(0, cell.entered - cell.unused)
  else
    m.cells = nil
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
      local current, oldest = cellOf(m, slot), oldestCell(m, slot)
      while cells[high] and cells[high].index <= current do
        units, high = units + cells[high].units, high + 1
      end
      while low < high and cells[low].index < oldest do
        units, low = units - cells[low].units, low + 1
      end
      if units > room then
        repeat
          units, low = units - cells[low].units, low + 1
        until units <= room
        slot = leavesCell(m, cells[low - 1].index)
      else
        while cells[ahead] do
          oldest = oldestCell(m, beginsCell(m, cells[ahead].index))
          if oldest > current then
            break
          end
          later = later + cells[ahead].units
          while cells[first].index < oldest do
            later, first = later - cells[first].units, first + 1
          end
          if later > room then
            blocked = cells[ahead].index
          end
          ahead = ahead + 1
        end
        if blocked <= current then
          return slot
        end
        slot = beginsCell(m, blocked)
      end
    end
  end,

  commit = enterCell,
  enter = enterCell,

  usage = function(m, now)
    local cells, oldest, used = readCells(m), oldestCell(m, now), 0
    for _, cell in ipairs(cells) do
      used = used + (cell.index >= oldest and cell.units or 0)
    end
    if used == 0 then
      return 0, 0
    end
    local leaving = math.max(1, used - m.max + 1)
    for _, cell in ipairs(cells) do
      leaving = leaving - (cell.index >= oldest and cell.units or 0)
      if leaving <= 0 then
        return used, leavesCell(m, cell.index)
      end
    end
  end,

  left = function(m, slot)
    local oldest, current, units = oldestCell(m, slot), cellOf(m, slot), 0
    for _, cell in ipairs(readCells(m)) do
      units = units + (cell.index >= oldest and cell.index <= current and cell.units or 0)
    end
    return units
  end,

  -- What a clock would need that steps back by a window is kept.
  trim = function(m, now)
    local oldest = oldestCell(m, now - m.window - m.margin)
    for _, cell in ipairs(readCells(m)) do
      if cell.index >= oldest then
        break
      end
      put(m, text(cell.index), nil)
      m.cells = nil
    end
  end,
}
