import { type AddressInfo, type Socket, connect, createServer } from 'node:net'
import type { Test } from 'tap'
import { listen } from '../../../helpers/upstream.ts'

/**
 * The behaviour of the proxy: forward connections, leave them open and mute, drop them, or refuse new ones.
 */
export type Mode = 'pass' | 'freeze' | 'down' | 'refuse'

export interface Proxy {
  port: number
  set: (mode: Mode) => void
  /** Ends every open connection; new ones are forwarded. With `reset` by RST, otherwise by FIN. */
  cut: (options?: { reset?: boolean }) => void
  /** Freezes as soon as a client sends this text. */
  freezeAt: (text: string) => void
  /** Delays the data with this text, and its connection, until the mode is set. Resolves once a client has sent it. */
  holdAt: (text: string) => Promise<void>
  /** The open connections hang for good, as when a router forgot them; new ones are forwarded. */
  lose: () => void
  /** The number of open client connections. */
  open: () => number
}

interface Pair {
  upstream?: Socket
  held?: Buffer
  lost?: boolean
}

/** A TCP proxy in front of a server, for faults that a test cannot cause in the server. */
export async function startProxy (t: Pick<Test, 'teardown'>, target: { host: string, port: number }): Promise<Proxy> {
  const pairs = new Map<Socket, Pair>()
  let mode: Mode = 'pass'
  let trap: { text: string, spring: (client: Socket, pair: Pair, data: Buffer) => void } | undefined

  const server = createServer((client) => {
    const pair: Pair = {}
    client.on('error', () => {}).on('close', () => {
      pair.upstream?.destroy()
      pairs.delete(client)
    })
    if (mode === 'down') return client.destroy()
    pairs.set(client, pair)
    if (mode === 'freeze') client.pause()
    else forward(client, pair)
  })

  function forward (client: Socket, pair: Pair): void {
    if (pair.lost) return
    pair.upstream ??= dial(client, pair)
    if (pair.held !== undefined) pair.upstream.write(pair.held)
    pair.held = undefined
    client.resume()
    pair.upstream.resume()
  }

  function dial (client: Socket, pair: Pair): Socket {
    const upstream = connect(target)
    upstream.on('error', () => {}).on('close', () => client.destroy()).on('data', (data) => client.write(data))
    client.on('data', (data) => {
      if (trap !== undefined && data.includes(trap.text)) trap.spring(client, pair, data)
      else upstream.write(data)
    })
    return upstream
  }

  function pause (client: Socket, pair: Pair): void {
    client.pause()
    pair.upstream?.pause()
  }

  function cut ({ reset = false } = {}): void {
    for (const client of pairs.keys()) {
      if (reset) client.resetAndDestroy()
      else client.end()
    }
  }

  function set (next: Mode): void {
    if (next !== 'refuse' && mode === 'refuse') void listen(server, port)
    if (next === 'refuse' && mode !== 'refuse') server.close()
    mode = next
    trap = undefined
    for (const [client, pair] of pairs) {
      if (mode === 'pass') forward(client, pair)
      if (mode === 'freeze') pause(client, pair)
      if (mode === 'down') client.destroy()
    }
  }

  await listen(server, 0)
  const { port } = server.address() as AddressInfo
  t.teardown(() => {
    set('down')
    server.close()
  })
  return {
    port,
    set,
    cut,
    freezeAt: (text) => { trap = { text, spring: () => set('freeze') } },
    holdAt: (text) => new Promise((resolve) => {
      trap = {
        text,
        spring: (client, pair, data) => {
          pause(client, pair)
          pair.held = data
          trap = undefined
          resolve()
        }
      }
    }),
    lose: () => {
      for (const [client, pair] of pairs) {
        pair.lost = true
        pause(client, pair)
      }
    },
    open: () => pairs.size
  }
}
