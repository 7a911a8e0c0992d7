import type { Test } from 'tap'
import type { Services } from '../../lib/identity.ts'
import type { Message } from '../../lib/mail/port.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import type { Store } from '../../lib/store/port.ts'
import { openPlainServices } from './plain-services.ts'
import { type Around, isListing, wrapStore } from './wrap-store.ts'

const WRITES = ['insert', 'insertMany', 'update', 'put', 'delete', 'deleteMany']

/** A process that is killed: from then on none of its calls of the store is made. */
export interface Killed {
  services: Services
  /** Kills it at one of its next writes. Resolves when that is reached. */
  killAt: (write: number) => Promise<void>
  /** Gives back what it holds. */
  bury: () => Promise<void>
}

/** Processes on one store. Those with mail send to `sent`. */
export function openProcesses (t: Pick<Test, 'teardown'>, store: Store) {
  const sent: Message[] = []
  const send = async (message: Message) => { sent.push(message) }
  const accounts = { selfDelete: true, getIssuer: () => new URL('https://id.example'), serviceName: 'Id' }
  const openOne = async ({ mail, sendsMail = false, around = (_call, run) => run(), skew = 0 }: { mail: boolean, sendsMail?: boolean, around?: Around, skew?: number }): Promise<Services> => await openPlainServices({
    store: wrapStore(store, around), now: () => Date.now() + skew, counter: { count: async () => ({ current: 1, ttl: 1 }) }, sendsMail, accounts: { ...accounts, ...(mail && { mail: { local: true, send } }) }, onError: () => {}
  })
  return {
    sent,
    openOne,
    async open (options: Parameters<typeof openOne>[0]): Promise<Services> {
      const services = await openOne(options)
      t.teardown(() => services.close())
      return services
    },
    async openMortal (): Promise<Killed> {
      const reached = Promise.withResolvers<void>()
      const hanging: (() => void)[] = []
      let [writes, last] = [0, Infinity]
      let isBuried = false
      const services = await openOne({
        mail: true,
        around ({ method }, run) {
          if (last !== Infinity && WRITES.includes(method)) writes++
          if (writes <= last || isListing(method)) return run()
          reached.resolve()
          const killed = new Error('the process was killed')
          return isBuried ? Promise.reject(killed) : new Promise((_resolve, reject) => { hanging.push(() => reject(killed)) })
        }
      })
      return {
        services,
        async killAt (write) {
          last = write
          await reached.promise
        },
        async bury () {
          isBuried = true
          last = -1
          hanging.forEach((end) => end())
          await services.close().catch(() => {})
        }
      }
    },
    /** The mails by mailbox and subject, and the ids of each. */
    listSent: () => Map.groupBy(sent, ({ to, subject }) => `${to}: ${subject.replace('Id: ', '')}`)
  }
}

/** Deletes all but what processes have read. */
export async function empty (store: Store): Promise<void> {
  for (const { name } of COLLECTIONS) if (!['meta', 'keys', 'feed'].includes(name)) await store.collection(name).deleteMany({ before: { id: '~' } })
}
