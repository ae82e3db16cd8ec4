-- bookchoose.lua: the index of a pool's accounts, and which of them takes a booking.

-- After so many commands a script leaves the rest to another.
local ENOUGH = 100

-- rankBehind returns how many members of the index do not stand behind that one of
-- that score, which may have another score by now.
local function rankBehind(index, score, member)
  local low = call('ZCOUNT', index, '-inf', '(' .. text(score))
  local high = low + call('ZCOUNT', index, text(score), text(score))
  while low < high do
    local middle = math.floor((low + high) / 2)
    if call('ZRANGE', index, middle, middle)[1] <= member then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- inTurn returns an iterator over the members of the index and their scores: in the order of the
-- scores, and equal ones like the names on a ring, from the one behind the member that was booked
-- last. Without the ring the first name would get all bookings that one instant sees. It can go
-- on behind a member.
local function inTurn(index, last, from)
  local rank, chunk, row, place = 0, 4, {}, 1
  local score, ring
  -- ringOf returns the ranks of the members of the score: names up to the last, from begins on, and
  -- those behind it, from middle on, which come first.
  local function ringOf(begins, upper)
    local ends = call('ZCOUNT', index, '-inf', text(score))
    return {begins = begins, middle = rankBehind(index, score, last), ends = ends, upper = upper}
  end
  if from then
    -- Those of its score that come before it may have other scores by now.
    score, rank = from.score, rankBehind(index, from.score, from.member)
    ring = ringOf(call('ZCOUNT', index, '-inf', '(' .. text(score)), from.member > last)
  end
  local function following()
    if ring and ring.upper and rank == ring.ends then
      rank, ring.upper, row = ring.begins, false, {}
    end
    if ring and not ring.upper and rank == ring.middle then
      rank, ring, row = ring.ends, nil, {}
    end
    if place > #row then
      row, place, chunk = call('ZRANGE', index, rank, rank + chunk - 1, 'WITHSCORES'), 1, 64
    end
    local member = row[place]
    if member and not ring and tonumber(row[place + 1]) ~= score then
      score = tonumber(row[place + 1])
      -- A score with one member has no ring.
      if member <= last and (row[place + 3] or row[place + 1]) == row[place + 1] then
        ring = ringOf(rank, true)
        rank, row = ring.middle, {}
        return following()
      end
    end
    rank, place = rank + 1, place + 2
    return member, score
  end
  return following
end

-- choose finds the account of the index that can take the turn's booking first. If that is much to do it
-- returns where to go on, as the arguments of another call. The scores that were found until then are
-- kept, so that it is done once for what comes after. From is where an earlier call stopped, or nil.
local function choose(batch, turn, from)
  local index = batch.request.index
  -- No account is free before the shared ones are.
  local soonest = #turn.common > 0 and settle(turn.common, turn.commonFrom, turn.queue) or turn.commonFrom
  soonest = math.max(soonest, batch.state.graceEnds)
  if from and from.before ~= '' and call('ZSCORE', index, from.before) then
    consider(batch, turn, from.before)
  end
  local last = from and from.newest or batch.newest
  local seenMember, seenScore
  for member, score in inTurn(index, last, from) do
    -- Scores are never too late, unless a caller's clock goes back behind cancelled slots
    -- that had passed: nothing behind this one is earlier.
    if turn.best and batch.now >= batch.seen and turn.best.slot <= math.max(soonest, score) then
      return nil
    end
    if work > ENOUGH and seenMember then
      local before = turn.best and turn.best.member or turn.refusal and turn.refusal.member or ''
      return table.concat({'behind ' .. text(seenScore), seenMember, before, last}, '\0')
    end
    seenMember, seenScore, work = member, score, work + 1
    if (not from or member ~= from.before) and not batch.request.excluded[string.match(member, ':(.*)$')] then
      consider(batch, turn, member)
    end
  end
  return nil
end

-- addMembers puts the members aside that ARGV has.
local function addMembers(request, aside)
  local some = {}
  for i = request.members, #ARGV do
    some[#some + 1], some[#some + 2] = '0', ARGV[i]
  end
  for i = 1, #some, 1000 do
    call('ZADD', aside, 'NX', unpack(some, i, math.min(i + 999, #some)))
  end
end

-- copyMembers puts the members of another index aside, with the changes that ARGV has. Their scores are not those
-- of the other: what lowers a score goes by what each account knows to have it.
local function copyMembers(request, aside)
  call('ZUNIONSTORE', aside, 1, table.concat(request.pools, request.old), 'WEIGHTS', 0)
  for i = request.members, #ARGV do
    local member = string.sub(ARGV[i], 2)
    if string.sub(ARGV[i], 1, 1) == '-' then
      call('ZREM', aside, member)
    else
      call('ZADD', aside, 0, member)
    end
  end
end

-- makeIndex makes the accounts' index of what ARGV tells. It returns what else there is to ask for; or, if
-- the index is there, nil and whether it is new. One that others have made meanwhile is as good.
local function makeIndex(request)
  local index, told = request.index, request.told
  local aside = index .. ':new'
  if call('EXISTS', index) == 1 then
    if told == 'all' then
      call('UNLINK', aside)
    end
    return nil
  elseif told == 'copy' and call('EXISTS', table.concat(request.pools, request.old)) == 1 then
    copyMembers(request, aside)
  elseif told == 'part' or told == 'all' then
    addMembers(request, aside)
  else
    return 'accounts'
  end
  call('PEXPIRE', aside, text(DAY / 1000))
  if told == 'part' then
    return 'rest'
  elseif call('ZCARD', aside) ~= request.count then
    if told == 'copy' then
      call('UNLINK', aside) -- what is told next must not be added to it
    end
    return 'accounts' -- another has made an index of what was put aside, or the other is not what it was
  end
  call('RENAME', aside, index)
  -- Before all that could still fail.
  call('PEXPIRE', index, text(DAY / 1000))
  return nil, true
end
