-- summary.lua: an account's summary, from which front.lua books, and what the account's hash has in its
-- place.

-- How ARGV[3] of book.lua begins where it has nothing but one set of limits: a single account,
-- no zone, nothing shared, nothing kept back, no scope. A summary ends with the whole of that
-- argument, its edition and limits too, so that front.lua compares all of it at once.
local ALONE = '  1 0 0 0  '

-- takeFront takes from a summary what front.lua has counted.
local function takeFront(account, summary)
  local p1, p2, p3, _, _, _, _, _, code, width, told, at = struct.unpack(FRONT, summary, SUMMARY_BYTES + 1)
  account.digest = string.match(string.sub(summary, at, at + width - 1), '^%x+')
  account.asked = string.sub(summary, at + width + told + #ALONE)
  local inForce = told > 0 and string.sub(summary, at + width, at + width + told - 1) or account.asked
  local window, _, _, extra, zone = string.match(inForce, '^%d+ %d+ %d+ (%d+) (%d+) (%u) (%d+) %S+ (%S+)')
  local function take(name, number)
    account.fields[name], account.dirty[name] = number and text(number), true
  end
  local name = {code == '*' and 'F' or code, window, code == 'U' and extra or 0, '-', zone}
  name = table.concat(name, '/') .. ':'
  if code == 'G' then
    take(name .. 'at', p1)
    take(name .. 'part', p2)
  elseif code == 'L' then
    account.ordered = p3
  elseif p2 == 0 or code == 'S' then
    return
  elseif code == 'U' then
    local length = tonumber(extra) * 32
    name = name .. text((p1 - p1 % length) / length)
    local block = account.fields[name] or ''
    if #block > 0 and struct.unpack('>I7', block, #block - 13) == p1 then
      block = string.sub(block, 1, #block - 14)
    end
    account.fields[name], account.dirty[name] = block .. struct.pack('>I7I7', p1, p2), true
  else
    account.windowOfFront = true
    name = name .. text(p1)
    take(name, p2)
    if code == 'W' then
      take(name .. '<', p3)
    elseif code == '*' then
      take(name .. '<', account.edge)
      take(name .. '^', p3)
    end
  end
end

-- frontOf returns what front.lua goes by, or '' if it must leave the account alone.
local function frontOf(account)
  local fields, set, m = account.fields, account.set, account.limits[1]
  local _, _, limits = splitEdition(fields.limits)
  if limits ~= set.text or fields.logs or
    (set.log or 'L') ~= (fields.kind or 'L') then
    return ''
  end
  for i, other in ipairs(account.limits) do
    if other.scope ~= '-' or other.code ~= m.code or i > 1 and not set.log then
      return ''
    end
  end
  local code, numbers = m.code, nil
  if set.log then
    local view, room = viewFor(account, '-'), math.huge
    for _, limit in ipairs(account.limits) do
      room = math.min(room, limit.max - countIn(view, math.max(account.edge, account.last) - limit.window))
    end
    local only = not account.limits[2] and m.max or 0
    room = math.max(0, account.total + room)
    local log = account.logs[1]
    if not log.stream then
      numbers = {room, log.piles[1].mask, account.ordered or account.total, 0, only}
    elseif log.stream.tail.slot > 0 then
      local tail = log.stream.tail
      local clean = log.piles[1].mask + log.piles[2].mask == 0 and 1 or 0
      numbers = {room, tail.number + tail.units, tail.slot, clean, only}
    end
  elseif counters[code].front then
    code, numbers = counters[code].front(m)
  end
  if not numbers then
    return ''
  end
  for i = 1, 7 do
    numbers[i] = numbers[i] or 0
  end
  local indexes = ''
  if account.digest then
    indexes = account.digest .. '*'
    for field in pairs(fields) do
      local units = string.match(field, '^index:' .. account.digest .. '%*(%d+)$')
      if units and #indexes + #units < 255 then
        indexes = indexes .. units .. '*'
      end
    end
  end
  local asked = account.asked or fields.limits
  local told = asked ~= fields.limits and fields.limits or ''
  numbers[8], numbers[9], numbers[10], numbers[11] = set.window, code, #indexes, #told
  return struct.pack(FRONT, unpack(numbers)) .. indexes .. told .. ALONE .. asked
end
