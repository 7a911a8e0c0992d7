import { once } from 'node:events'
import { type AddressInfo, type Socket, connect, createServer } from 'node:net'
import type { Test } from 'tap'

/** What the proxy does with what comes: carries it, keeps it without a sign, or cuts every connection. */
export type Mode = 'pass' | 'freeze' | 'down'

export interface Proxy {
  port: number
  set: (mode: Mode) => void
  /** Freezes as soon as a client sends this text. */
  freezeAt: (text: string) => void
  /** Keeps what a client sends with this text, and that connection, until the mode is set. Resolves when it is sent. */
  holdAt: (text: string) => Promise<void>
  /** The connections that are open hang for good, as when a router forgot them; new ones are carried. */
  lose: () => void
  /** Connections of clients that are open. */
  open: () => number
}

interface Pair {
  upstream?: Socket
  held?: Buffer
  lost?: boolean
}

/** A TCP proxy before a server, for faults that the server itself cannot be made to have. */
export async function startProxy (t: Test, target: { host: string, port: number }): Promise<Proxy> {
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
    if (mode === 'pass') carry(client, pair)
    else client.pause()
  })

  function carry (client: Socket, pair: Pair): void {
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

  function set (next: Mode): void {
    mode = next
    trap = undefined
    for (const [client, pair] of pairs) {
      if (mode === 'pass') carry(client, pair)
      if (mode === 'freeze') pause(client, pair)
      if (mode === 'down') client.destroy()
    }
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    set('down')
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    set,
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
