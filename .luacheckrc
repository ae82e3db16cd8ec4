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

-- A script is several files put one after the other: first parts, which only
-- define file-level locals, then the one that ends in a return. What the parts
-- define is known in all files, and not unused in its own (211, 241).
read_globals, globals, ignore = {}, {}, {}
for path in io.popen("ls internal/redisstore/lua/*.lua"):lines() do
   local file = assert(io.open(path))
   local text = "\n" .. file:read("*a")
   file:close()
   if not text:find("\nreturn") then
      for keyword, rest in text:gmatch("\nlocal (%l*)([^\n=(]*)") do
         local of = keyword == "function" and read_globals or globals
         for name in (keyword == "function" and rest or keyword .. rest):gmatch("[%w_]+") do
            of[#of + 1] = name
            ignore[#ignore + 1] = "211/" .. name
            ignore[#ignore + 1] = "241/" .. name
         end
      end
   end
end

-- The sections of the files front*.lua stand in front.lua, and know all names of that.
local inFront = {}
local front = assert(io.open("internal/redisstore/lua/front.lua"))
for names in front:read("*a"):gmatch("local ([%w_, ]+)") do
   for name in names:gmatch("[%w_]+") do
      inFront[#inFront + 1] = name
   end
end
front:close()
files["internal/redisstore/lua/front?*.lua"] = {globals = inFront}
files["internal/redisstore/lua/front.lua"] = {ignore = {"211", "231"}}
