# frozen_string_literal: true

require "securerandom"

require_relative "wire"

# The sessions of MCP. Each belongs to the credentials that opened it, and ends when it is not used.
class Sessions
  MOST = 10_000
  LONGEST_IDLE = 3600

  def initialize
    @sessions = {}
    @lock = Mutex.new
  end

  def open(caller)
    id = SecureRandom.hex(24)
    @lock.synchronize do
      @sessions[id] = [caller.identity, Wire.now]
      @sessions.shift if @sessions.size > MOST
    end
    id
  end

  # Whether there is such a session and it is the caller's.
  def of?(id, caller)
    @lock.synchronize do
      owner, used = @sessions.delete(id)
      return false if owner.nil? || Wire.now - used > LONGEST_IDLE

      @sessions[id] = [owner, owner == caller.identity ? Wire.now : used]
      owner == caller.identity
    end
  end

  def close(id)
    @lock.synchronize { @sessions.delete(id) }
  end
end
