# frozen_string_literal: true

require_relative "catalog"
require_relative "wire"

# Keeps the catalog of each caller for a while, and fetches each once at a time.
class Catalogs
  MOST = 2000

  Entry = Struct.new(:catalog, :fetched_at, :expired) do
    def age = Wire.now - fetched_at
  end

  # A catalog, and how many seconds ago it was right if the site no longer responds.
  View = Struct.new(:catalog, :stale_for)

  def initialize(drupal, settings)
    @drupal = drupal
    @toolbox = Toolbox.new
    @page_size = settings.page_size
    @ttl = [settings.discovery_ttl, settings.permission_ttl].min
    @entries = {}
    @flights = {}
    @lock = Mutex.new
  end

  def for(caller)
    key = caller.view
    flight = @lock.synchronize do
      entry = @entries[key]
      return View.new(entry.catalog) if entry && !entry.expired && entry.age < @ttl

      @flights[key] ||= Thread.new { fetch(key, caller) }.tap { |thread| thread.report_on_exception = false }
    end
    flight.value
  end

  # The site has shown that the caller's catalog is out of date.
  def expire(caller)
    @lock.synchronize { @entries[caller.view]&.expired = true }
  end

  private

  def fetch(key, caller)
    started = Wire.now
    catalog = Catalog.from(@drupal.discover(caller), @toolbox, @page_size)
    @lock.synchronize do
      @entries.delete(key)
      @entries[key] = Entry.new(catalog, started)
      @entries.shift if @entries.size > MOST
    end
    View.new(catalog)
  rescue Failure => e
    @lock.synchronize do
      @entries.delete(key) unless e.upstream?
      entry = @entries[key] or raise
      View.new(entry.catalog, entry.age)
    end
  ensure
    @lock.synchronize { @flights.delete(key) }
  end
end
