import type { FastifyInstance } from 'fastify'
import { overviewPage } from '../../lib/pages/console/overview.ts'
import type { Status } from '../../schemas/status.ts'
import type { AddPage } from './page.ts'
import { readText } from './people.ts'

/** The first page of the console: what needs attention, and what to set up next. */
export function overviewPages (_app: FastifyInstance, add: AddPage): void {
  add({
    path: '/',
    section: 'overview',
    commands: (desk) => desk.may('getStatus') ? ['status', 'doctor', 'config check'] : [],
    async show (desk) {
      const held = readText(desk, 'held') === 'true' ? 'true' : undefined
      const found = await desk.read<Status>('getStatus', { path: '/status', query: { held } })
      return (view, context) => overviewPage(view, { status: found?.data }, context)
    }
  })
}
