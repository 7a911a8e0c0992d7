import { RATES, type Bench, type Case, type Server } from '../bench.ts'
import { admin } from '../loads.ts'
import { toRaw } from '../http.ts'
import { ensureFile } from '../seed.ts'
import type { Subject } from '../types.ts'

const USERS = 1_000

export const FIRST = 'page 1'
export const pagesOf = (full: boolean) => full ? 10_000 : 1_000
export const keysetRow = (full: boolean) => `page ${pagesOf(full).toLocaleString('en')} by its cursor`

/** Follows `Link: <...>; rel="next"` to a page; undefined where the list ends before it. */
async function findPage (server: Server, page: number): Promise<string | undefined> {
  const { port } = await server.child.ready
  let path = '/api/v1/client/list?limit=100'
  for (let at = 1; at < page; at++) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: admin })
    await response.arrayBuffer()
    const next = /<([^>]*)>; *rel="?next"?/.exec(response.headers.get('link') ?? '')?.[1]
    if (next === undefined) return undefined
    const url = new URL(next, response.url)
    path = url.pathname + url.search
  }
  return path
}

async function toSubject (bench: Bench, server: Server, label: string, path: string): Promise<Subject> {
  const target = await bench.aim(server, { requests: [toRaw({ path, headers: admin })] })
  return { label, measure: () => bench.measure(target, { connections: 4 }) }
}

/** The last page should cost as much as the first. */
export default {
  name: 'pages',
  title: 'Pages of 100 clients, far into a long list',
  notes: ['fastify-identity on SQLite, on one core; 4 connections. 100,000 clients, with --full 1,000,000.'],
  columns: RATES,
  compared: ['rate'],
  baseline: FIRST,
  servers: async (bench) => {
    const database = `sqlite:${await ensureFile({ users: USERS, clients: pagesOf(bench.settings.full) * 100, tokens: USERS }, bench.log)}`
    return [{ label: 'identity', file: 'identity.ts', options: { database } }]
  },
  scenario: async (bench, servers) => {
    const server = servers.get('identity')!
    const pages = pagesOf(bench.settings.full)
    const subjects = [
      await toSubject(bench, server, FIRST, '/api/v1/client/list?limit=100'),
      await toSubject(bench, server, `page ${pages.toLocaleString('en')} by offset`, `/api/v1/client/list?limit=100&offset=${(pages - 1) * 100}`)
    ]
    const path = await findPage(server, pages)
    if (path !== undefined) subjects.push(await toSubject(bench, server, keysetRow(bench.settings.full), path))
    return subjects
  }
} satisfies Case
