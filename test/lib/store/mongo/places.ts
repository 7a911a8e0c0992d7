import { randomBytes } from 'node:crypto'
import { MongoClient } from 'mongodb'
import type { Test } from 'tap'

export interface Places {
  /** The URL of a database that only this test file uses, empty at first. */
  url: (place: string, options?: Record<string, string>) => string
  database: (place: string) => string
  /** The raw driver, for access to the stored form. */
  client: MongoClient
}

/** Databases that only this test file uses, dropped when it ends. */
export function createPlaces (t: Test, server: string): Places {
  const prefix = `identity_test_${randomBytes(6).toString('hex')}`
  const client = new MongoClient(server)
  const used = new Set<string>()

  t.teardown(async () => {
    for (const name of used) await client.db(name).dropDatabase()
    await client.close()
  })

  function database (place: string): string {
    const name = `${prefix}_${place}`
    used.add(name)
    return name
  }

  return {
    client,
    database,
    url: (place, options = {}) => {
      // By hand, because URL does not parse a list of hosts.
      const [, origin = '', query = ''] = /^([a-z+]+:\/\/[^/?]*)(?:\/[^?]*)?(?:\?(.*))?$/.exec(server) ?? []
      return `${origin}/${database(place)}?${new URLSearchParams({ ...Object.fromEntries(new URLSearchParams(query)), ...options })}`
    }
  }
}
