import type { FastifyInstance } from 'fastify'
import { overviewPage } from '../../lib/pages/console/overview.ts'
import type { AddPage } from './page.ts'

/** The first page of the console. */
export function overviewPages (_app: FastifyInstance, add: AddPage): void {
  add({ path: '/', section: 'overview', show: () => (view, context) => overviewPage(view, context) })
}
