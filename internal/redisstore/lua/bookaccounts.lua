-- bookaccounts.lua: how a booking looks at the accounts that it may be charged to.
--
-- A batch, which is the bookings of one call, has
--
--   request    see bookrequest.lua
--   state      the budget's: common.lua
--   now, seen  the time, and the latest that any booking before has seen
--   highest    the highest revision that limits were booked with
--   opened     the accounts that are open, by ID
--   booked     those of them that were booked, in that order
--   last       the account that was charged last, or nil
--   newest, newestField  the member of the index that was booked last, '' if none was; its field
--   least      the queue with a cost of as many units as the index is for
--   answers    the records of the reply so far
--
-- and a turn, which is one booking and those behind it with the same answer,
--
--   cost, queue        the booking's
--   common, commonFrom  the shared accounts, and the first instant that they and a pause of all allow
--   paused             the first slot behind a pause of all accounts; false: there is none
--   best               the best account so far: slot, capacity, accounts, member, accountID
--   scores             the scores that the index is to have
--   refusal            why there is no account, if so

-- effectiveLimits compares the limits that an account keeps with those of the request.
-- It returns those of the later edition, and their text; or nil if people must decide between two, with the text
-- if this script lacks an algorithm of the later ones.
local function effectiveLimits(account, set)
  local theirs, ours = account.fields.limits, text(set.revision) .. ' ' .. text(set.version) .. ' ' .. set.text
  if not theirs or theirs == ours then
    return set, ours
  end
  local revision, version, limits = splitEdition(theirs)
  if limits == set.text then
    local later = isLater(revision, version, set.revision, set.version)
    account.effective = later and theirs or nil
    return set, later and theirs or ours
  elseif isLater(set.revision, set.version, revision, version) then
    return set, ours
  elseif revision == set.revision and version == set.version then
    return nil
  end
  readOwnZones(account)
  local effective = limitset(limits)
  if bad then
    bad = nil
    return nil, theirs
  end
  account.effective = theirs
  return effective, theirs
end

-- openEffective opens an account with its effective limits: those of the latest
-- edition. Two limits of one edition are for people to decide between. It returns nil if the account
-- cannot be booked, and the turn's refusal says why.
local function openEffective(batch, turn, accountID, set)
  local account = batch.opened[accountID]
  if account then
    return account
  end
  account = readAccount(accountID, set, batch.now)
  local theirs = account.fields.limits
  local effective, ours = effectiveLimits(account, set)
  if not effective and ours then
    turn.refusal = {again = 'algorithms'}
    return nil
  elseif not effective then
    turn.refusal = turn.refusal or {kind = 'D', accountID = accountID, theirs = theirs}
    return nil
  end
  if effective.log and not kinds[account.fields.kind or effective.log] then
    turn.refusal = {again = 'algorithms'}
    return nil
  end
  account.given = set
  openUnder(account, effective, ours)
  account.asked = text(set.revision) .. ' ' .. text(set.version) .. ' ' .. set.text
  if isLost(account) then
    forgetLost(account, batch.state, batch.seen)
  end
  batch.opened[accountID] = account
  return account
end

-- noteScore notes the score of an account in the index: the slot that a booking of the index's units would
-- get from it if it came long ago. That is never more than what the next booking gets, and for a free account when
-- it became free, so that of several free accounts the one that has been free the longest is taken.
local function noteScore(batch, turn, account, member, score)
  local index = batch.request.index
  local name = string.sub(index, #base + 7)
  if turn.queue.name == '' then
    account.digest = batch.request.digest
  end
  turn.scores[member] = score
  local field = 'index:' .. name
  if account.fields[field] ~= member then
    account.fields[field] = member
    call('HSET', account.key, field, member)
    if not account.fields.made then
      call('PEXPIRE', account.key, text(DAY / 1000))
    end
  end
end

-- consider looks at one account, which becomes the turn's best if it can take the booking sooner than
-- others.
local function consider(batch, turn, member)
  local request, queue, cost = batch.request, turn.queue, turn.cost
  local accountID, set = readMember(request, member)
  if not set or cost > request.most or cost > mostOf(set, queue.scopes) then
    return
  end
  local account = openEffective(batch, turn, accountID, set)
  local refusal = turn.refusal
  if refusal and not refusal.member and refusal.accountID == accountID then
    refusal.member = member
  end
  if not account or cost > mostOf(account.set, queue.scopes) then
    return
  end
  local accounts = {account}
  local metersFrom = 0
  for i, other in ipairs(request.meters) do
    local meter, units = openEffective(batch, turn, meterID(accountID, other.unit), other.set), turn.units[i]
    if not meter or units > mostOf(meter.set, queue.scopes) then
      return
    end
    meter.units, metersFrom = units, math.max(metersFrom, pausedUntil(meter.id))
    if units > 0 then
      accounts[#accounts + 1] = meter
    end
  end
  for _, each in ipairs(turn.common) do
    accounts[#accounts + 1] = each
  end
  local paused = pausedUntil(accountID)
  if paused <= batch.now then
    paused = 0 -- it is over
  end
  local last = lastOf(account, queue.name)
  local since = scoredFrom(account, last)
  -- Only the index needs the slot of the account's own limits.
  local slot, capacity = last, nil
  if request.index then
    slot, capacity = settle({account}, since, queue)
    noteScore(batch, turn, account, member,
      math.max(paused, cost == batch.least.cost and slot or (settle({account}, since, batch.least))))
  end
  local from = math.max(turn.commonFrom, metersFrom, batch.state.graceEnds, released(accountID, paused, last))
  if not request.index or #accounts > 1 or slot < from then
    slot, capacity = settle(accounts, math.max(from, slot), queue)
  end
  if not queue.several or paused > 0 then
    capacity = 1
  end
  if not turn.best or slot < turn.best.slot then
    turn.best = {slot = slot, capacity = capacity, accounts = accounts, member = member, accountID = accountID}
  end
end
