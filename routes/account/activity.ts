import type { FastifyInstance } from 'fastify'
import { showOwnEvents } from '../../lib/events/own.ts'
import type { AccountMount, Visits } from '../../plugins/account.ts'
import { createPages } from './page.ts'

/** The events of the person's account. */
export function activityPages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { events, store, upstreams } = app.identity
  const nameUpstream = (id: string) => upstreams?.list().find((one) => one.id === id)?.name

  createPages(app, mount, visits)('/activity', 'account-activity', {
    section: 'activity',
    async show ({ user: { user_id } }) {
      const [own, ofClients] = await Promise.all([events.listOwn(user_id), events.listOfClients(user_id)])
      return { events: await showOwnEvents(store, own, nameUpstream), clientEvents: await showOwnEvents(store, ofClients) }
    }
  })
}
