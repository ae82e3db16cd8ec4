-- What a script may use inside Redis (6.2 to 8): Lua 5.1 without io, os and
-- modules, and without globals of its own, which Redis refuses.
stds.redis = {
   read_globals = {
      "redis", "KEYS", "ARGV",
      "struct", "cjson", "cmsgpack", "bit",
      "string", "table", "math",
      "assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall",
      "rawequal", "rawget", "rawset", "select", "setmetatable", "tonumber",
      "tostring", "type", "unpack", "xpcall", "_VERSION",
   },
}
std = "redis"
max_line_length = 120

-- A script is several files put one after the other. These are the file-level
-- locals that one file defines and another uses: not unused in the first
-- (211), known in the second.
local shared = {
}

read_globals = shared
ignore = {}
for i, name in ipairs(shared) do
   ignore[i] = "211/" .. name
end
