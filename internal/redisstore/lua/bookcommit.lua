-- bookcommit.lua: what a turn changes: the limits in force, the accounts, the index.

-- enforce puts the limits of the request in force on the accounts of the best answer.
local function enforce(batch, best)
  for _, each in ipairs(best.accounts) do
    if each.replaced then
      lowerScores(each)
      each.replaced = false
    end
  end
  local revision = batch.highest
  for _, each in ipairs(best.accounts) do
    revision = math.max(revision, each.given.revision)
  end
  if revision > batch.highest then
    batch.highest = revision
    call('HSET', base, 'revision', text(revision))
    renew(batch.now)
  end
end

-- touch readies an account of the best answer for what changes it.
local function touch(batch, account)
  if account.booked == 0 then
    batch.booked[#batch.booked + 1] = account
  end
end

-- enforceReplaced enforces limits that replace others, though nothing is booked.
local function enforceReplaced(batch, best)
  local some = false
  for _, each in ipairs(best.accounts) do
    if each.replaced then
      touch(batch, each)
      some = true
    end
  end
  if some then
    enforce(batch, best)
  end
end

-- commitBest books so many of the turn's bookings where the first was found to be best, and returns the
-- first one's entry.
local function commitBest(batch, turn, count)
  local best, queue, parts = turn.best, turn.queue, {}
  for i, each in ipairs(best.accounts) do
    local cost = each.units or turn.cost
    touch(batch, each)
    parts[i] = addUnits(each, queue, best.slot, cost * count, 'commit', cost)
  end
  -- The meters come behind the account: those without units are not among what is charged.
  for i, units in ipairs(turn.units) do
    if units == 0 then
      table.insert(parts, i + 1, NOTHING)
    end
  end
  enforce(batch, best)
  local account = best.accounts[1]
  batch.last = account
  if batch.request.index then
    turn.scores[best.member] = settle({account}, scoredFrom(account, lastOf(account, queue.name)), batch.least)
    batch.newest = best.member
  end
  return queue.name .. '\0' .. table.concat(parts)
end

local function writeScores(index, scores)
  for member, score in pairs(scores) do
    call('ZADD', index, text(score), member)
  end
end
