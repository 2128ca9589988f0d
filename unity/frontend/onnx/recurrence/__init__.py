"""RNN, GRU and LSTM, and one step of each."""
