interface SlotOptions {
  /** Concurrent tasks. */
  size: number
  /** Concurrent tasks of one lane: what hangs there leaves slots for the others. As many as there are slots by default. */
  lane?: number
  /** Slots that only urgent tasks take. */
  reserved?: number
  /** Tasks that may wait, for callers that ask `isFull` first. Any number by default. */
  waiting?: number
}

export interface TaskOptions {
  /** Lanes take turns. Tasks of one lane start in the order of their calls. */
  lane?: string
  urgent?: boolean
}

interface Lane {
  running: number
  waiting: { start: () => void, urgent: boolean }[]
}

/** Limits concurrent tasks, and divides the slots among lanes. */
export class Slots {
  readonly #size: number
  readonly #ofLane: number
  readonly #ofOthers: number
  readonly #most: number
  /** Lanes with tasks, the least recently served one first. */
  readonly #lanes = new Map<string, Lane>()
  readonly #idle: (() => void)[] = []
  #running = 0
  /** Running tasks that are not urgent. */
  #others = 0

  constructor ({ size, lane = size, reserved = 0, waiting = Infinity }: SlotOptions) {
    this.#size = size
    this.#ofLane = lane
    this.#ofOthers = size - reserved
    this.#most = size + waiting
  }

  get running (): number { return this.#running }

  /** Whether as many tasks run and wait as may. */
  get isFull (): boolean {
    let count = this.#running
    for (const { waiting } of this.#lanes.values()) count += waiting.length
    return count >= this.#most
  }

  /** Starts the task when it has a slot. Its promise stays pending when `drop` is called before. */
  async run<T> (task: () => Promise<T>, { lane: name = '', urgent = false }: TaskOptions = {}): Promise<T> {
    const lane = this.#lanes.get(name) ?? { running: 0, waiting: [] }
    this.#lanes.set(name, lane)
    const started = new Promise<void>((resolve) => lane.waiting.push({ start: resolve, urgent }))
    this.#fill()
    await started
    try {
      return await task()
    } finally {
      this.#running--
      lane.running--
      if (!urgent) this.#others--
      if (lane.running === 0 && lane.waiting.length === 0) this.#lanes.delete(name)
      this.#fill()
      if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve()
    }
  }

  /** Drops the tasks that have not started. */
  drop (): void {
    for (const [name, lane] of this.#lanes) {
      lane.waiting.length = 0
      if (lane.running === 0) this.#lanes.delete(name)
    }
  }

  /** Resolves when no task is running or waiting. */
  async settle (): Promise<void> {
    while (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  #fill (): void {
    for (let next = this.#findNext(); next !== undefined; next = this.#findNext()) {
      const [name, lane] = next
      const { start, urgent } = lane.waiting.shift()!
      this.#running++
      lane.running++
      if (!urgent) this.#others++
      // It was served, so the others come first.
      this.#lanes.delete(name)
      this.#lanes.set(name, lane)
      start()
    }
  }

  #findNext (): [string, Lane] | undefined {
    if (this.#running === this.#size) return
    for (const [name, lane] of this.#lanes) {
      const first = lane.waiting[0]
      if (first !== undefined && lane.running < this.#ofLane && (first.urgent || this.#others < this.#ofOthers)) return [name, lane]
    }
    return undefined
  }
}
